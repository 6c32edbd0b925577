"""A rig's node with sixteen simulated cards, its advertiser as it is installed, and the way to see what is told.

What is told is looked at as others do: the file on the node, and the annotation in the API server, side by side.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from partage_plugins.codecs import decode_inventory
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.keys import INVENTORY as ANNOTATION
from partage_simgpu.description import as_text, card_uuid, described
from partage_simgpu.driver_root import CONF
from rig.errors import ComponentFailed, Refused
from rig.machine.components import Component
from rig.nodes.node import NodeSettings
from rig.patience import Wait, in_vain
from rig.programs.steps import to_stderr
from rig.rig import Rig, RigSettings, running
from support.advertiser_stage import INVENTORY, AdvertiserStage
from support.audit import Audit
from support.simgpu import Card, card
from support.simgpu_stage import DRIVER, install_driver, simgpud

CARDS: Final = (*("h100",) * 8, *("a100-80g",) * 4, *("l4",) * 4)
CUT: Final = (card("h100", mig=("1g.10gb", "3g.40gb")), *CARDS[1:])
"""The same, and the first card in two MIG instances."""
FIRST, SECOND, LAST = (card_uuid("rig", ordinal) for ordinal in (0, 1, len(CARDS) - 1))
_FOR_DEVELOPERS: Final = "import sys\nsys.modules.update(dict.fromkeys(('rich', 'pygments')))\n"
_EVERY_S: Final = 0.01

Right = Callable[[Inventory], bool]


class Seen(NamedTuple):
    file_s: float
    annotation_s: float


def all_ok(inventory: Inventory) -> bool:
    part = inventory.part(GPU)
    return part is not None and [one.health for one in part.cards] == ["ok"] * len(CARDS)


def health_of(inventory: Inventory, id_: str) -> str:
    """Of one card; `none` where nothing is told of it."""
    part = inventory.part(GPU)
    return next((one.health for one in part.cards if one.id == id_), "none") if part else "none"


def is_lost(id_: str) -> Right:
    return lambda inventory: health_of(inventory, id_) == "lost"


@dataclass(frozen=True)
class Node:
    """The node and all that can be done to it."""

    rig: Rig
    stage: AdvertiserStage
    driver: Component
    advertiser: Component
    audit: Audit

    def tell(self, command: str) -> None:
        self.stage.tell_driver(command)

    def describe(self, cards: Sequence[str | Card]) -> None:
        """Other cards from simgpud's next start on; what was seen of its files stays."""
        made = [card(one) if isinstance(one, str) else one for one in cards]
        (self.stage.machine.path(DRIVER) / CONF).write_text(as_text(described("rig", made)))

    @property
    def child_pid(self) -> int:
        return children(self.advertiser.pid)[0]

    def begin_anew(self) -> None:
        """An advertiser that remembers no fault, and sixteen healthy cards told."""
        self.advertiser.kill()
        self.stage.machine.path(INVENTORY).unlink(missing_ok=True)
        self.advertiser.start()
        self.seen(all_ok)

    def told(self) -> Inventory | None:
        try:
            text = self.rig.cluster.nodes.annotations(self.stage.name).get(ANNOTATION)
        except (Refused, ComponentFailed):
            return None
        return decode_inventory(text, (GPU,)) if text else None

    def seen(self, right: Right, *, since: float | None = None) -> Seen:
        """Seconds from then, or from now, until file and annotation are right."""
        began, wait = time.monotonic() if since is None else since, Wait()
        found: dict[str, float] = {}
        looks = {"file": self.stage.written, "annotation": self.told}
        while len(found) < len(looks):
            for name in looks.keys() - found.keys():
                inventory = looks[name]()
                if inventory is not None and right(inventory):
                    found[name] = time.monotonic() - began
            if not wait.left_s():
                raise in_vain("file and annotation are right", f"{[*found]}: {self.rig.tails()}", wait)
            time.sleep(_EVERY_S)
        return Seen(found["file"], found["annotation"])


Act = Callable[[Node], None]


@contextmanager
def node(folder: Path) -> Generator[Node]:
    """One that tells of sixteen healthy cards; a card that is well again is ok at once."""
    audit = Audit(folder)
    settings = RigSettings({"n1": NodeSettings()}, audit.settings())
    with running(settings, say=to_stderr) as rig:
        stage = AdvertiserStage(rig, "n1")
        install_driver(stage.machine, CARDS)
        driver = rig.nodes["n1"].daemon(simgpud())
        driver.start()
        driver.wait_ready()
        environment = {"PARTAGE_GPU_QUIET_S": "0", **_as_installed(rig.folder / "installed")}
        made = Node(rig, stage, driver, stage.start(env=environment), audit)
        made.seen(all_ok)
        yield made
        made.advertiser.require_running()


def children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for file in found for child in file.read_text().split()]


def _as_installed(folder: Path) -> dict[str, str]:
    """Where the byte code is kept, and what is not found: structlog would bring all of rich along."""
    folder.mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(_FOR_DEVELOPERS)
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "cache")}
    return {"PYTHONPATH": str(folder), **kept}
