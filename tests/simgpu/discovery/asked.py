"""A driver queried by tests: its facts once they exist, and whether it woke anyone."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from partage_gpu.nvml.driver import Driver
from partage_gpu.nvml.facts import CardFacts, NodeFacts, Trouble, TroubleKind, Xid
from partage_simgpu.node import SimulatedNode
from support.simgpu import NODE, card_uuid
from support.steered import eventually

ONE, TWO, THREE = (card_uuid(NODE, ordinal) for ordinal in range(3))
PATIENT_S = 600.0
"""A deadline for looks that succeed, even on a busy machine."""
HASTY_S = 0.5
"""A deadline for looks that fail."""


class Asked:
    def __init__(self, root: Path, *, deadline_s: float) -> None:
        self.woken = 0
        self.driver = Driver(root, wake=self._wake, look_deadline_s=deadline_s)

    def _wake(self) -> None:
        self.woken += 1

    @property
    def pid(self) -> int:
        """Pid of the child, which must run."""
        assert self.driver.pid is not None
        return self.driver.pid

    def facts(self) -> NodeFacts:
        """Wait for facts."""
        return eventually(
            lambda: look if isinstance(look := self.driver.look(), NodeFacts) else None, "a look succeeds"
        )

    def card(self, uuid: str) -> CardFacts:
        return next(card for card in self.facts().cards if card.uuid == uuid)

    def trouble(self, kind: TroubleKind) -> Trouble:
        """Wait for a trouble of that kind."""

        def of_that_kind() -> Trouble | None:
            look = self.driver.look()
            return look if isinstance(look, Trouble) and look.kind == kind else None

        return eventually(of_that_kind, f"there is trouble: {kind}")

    def wakes(self, doing: Callable[[], object]) -> None:
        before = self.woken
        doing()
        eventually(lambda: self.woken > before, "it wakes")

    def xids(self, count: int) -> Sequence[Xid]:
        """Wait for this many XIDs."""
        found: list[Xid] = []

        def all_told() -> bool:
            found.extend(self.driver.xids())
            return len(found) >= count

        eventually(all_told, f"{count} XIDs are told")
        return found


@contextmanager
def asked(root: Path, *, deadline_s: float = PATIENT_S) -> Generator[Asked]:
    """A driver by its root; closed afterwards."""
    made = Asked(root, deadline_s=deadline_s)
    try:
        yield made
    finally:
        made.driver.close()


def is_gone(pid: int) -> bool:
    """Neither a process nor a zombie."""
    return not Path(f"/proc/{pid}").exists()


def laid_out_anew(node: SimulatedNode, change: Callable[[str], str]) -> None:
    """Restart a node with its file changed."""
    conf = node.root / "etc/simgpu/node.conf"
    conf.write_text(change(conf.read_text()))
    node.restart()
