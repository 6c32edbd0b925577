"""Files between the programs of this node: liveness files, and the pause file for NVIDIA's operator.

The mtime of a liveness file is when its writer last did its work: kubelet called crishim, or the broker completed a
round. crishim's condition file adds whether it honours allocations, since it serves even if it cannot. Users cannot
forge the mtime, since the folder is not visible to them, and the file outlives its writer; so only its age counts. An
mtime in the future (the clock was set back) counts as old, until the next update corrects it.

The pause makes the plugin and the broker release the driver while labels that NVIDIA's operator sets on the node show
work in progress: a driver upgrade, new MIG instances, or anything for which it stops its own clients of the driver. A
file that an administrator puts beside ours is left alone.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from partage_base.condition import Condition
from partage_base.condition_file import last_condition
from partage_base.files import write_whole
from partage_base.version import VERSION
from partage_plugins.api.inventory import Ready
from partage_plugins.api.places import BROKER_ALIVE, KUBELET_SPOKE, PAUSE_FOLDER

_CLOCK_SLACK_S: Final = 2.0
_LONGEST_VERSION: Final = 64
_VERSION: Final = re.compile(r"[0-9A-Za-z.+_-]+", re.ASCII)
OURS: Final = "driver-upgrade"
LABEL: Final = "nvidia.com/gpu-driver-upgrade-state"
_QUIET: Final = frozenset(
    ("", "unknown", "upgrade-required", "validation-required", "uncordon-required", "upgrade-done")
)
"""States before or after work on the driver; in every other state its clients are stopped, or it is unloaded itself."""
MIG_LABEL: Final = "nvidia.com/mig.config.state"
_MIG_AT_WORK: Final = frozenset(("pending", "rebooting"))
_CLIENTS: Final = "nvidia.com/gpu.deploy."
_STOPPED: Final = "paused-for-"
"""The prefix of the value while the operator keeps one of its clients of the driver stopped, for any reason."""


def why_paused(labels: Mapping[str, str]) -> str | None:
    """The reason of the pause, for people; None if there is no pause."""
    if labels.get(LABEL, "") not in _QUIET:
        return "the GPU operator upgrades the driver"
    if labels.get(MIG_LABEL) in _MIG_AT_WORK:
        return "the MIG manager makes other instances"
    stopped = sorted(value for key, value in labels.items() if key.startswith(_CLIENTS) and value.startswith(_STOPPED))
    return f"the GPU operator keeps its clients stopped: {stopped[0]}" if stopped else None


class Readiness:
    """The liveness files of one node."""

    def __init__(self, root: Path, *, within_s: float, clock: Callable[[], float] = time.time) -> None:
        self._root = root
        self._within_s = within_s
        self._clock = clock

    def now(self) -> Ready:
        crishim, broker = self._why_no_crishim(), self._why_no_broker()
        return Ready(crishim=not crishim, broker=not broker, why="; ".join(filter(None, (crishim, broker))))

    def crishim_says(self) -> Condition:
        """Faults of crishim, and the containers that it kept from cards; empty if it reports nothing."""
        return self._condition() or Condition()

    def keys(self) -> tuple[str, ...]:
        """The ids of the keys that crishim trusts; none if it reports nothing."""
        return self.known_keys() or ()

    def known_keys(self) -> tuple[str, ...] | None:
        """The same; None if no crishim reports anything, as on nodes whose cards are for claims."""
        condition = self._condition()
        return None if condition is None else condition.keys

    def versions(self) -> dict[str, str]:
        """Versions of this advertiser and of the live daemons, as far as they report them."""
        condition, found = self._condition(), {"advertiser": VERSION}
        if condition is not None:
            found["crishim"] = condition.version
        if self._is_fresh(BROKER_ALIVE):
            with contextlib.suppress(OSError), (self._root / BROKER_ALIVE).open(errors="replace") as file:
                found["broker"] = file.read(_LONGEST_VERSION)
        return {name: text for name, text in found.items() if _VERSION.fullmatch(text)}

    def _why_no_crishim(self) -> str:
        condition = self._condition()
        if condition is None:
            return "crishim gives no sign of life"
        refusing = next((fault.sentence for fault in condition.faults if fault.refuses), "")
        if refusing:
            return f"crishim honours no allocation: {refusing}"
        return "" if self._is_fresh(KUBELET_SPOKE) else "kubelet does not speak through crishim"

    def _why_no_broker(self) -> str:
        return "" if self._is_fresh(BROKER_ALIVE) else "the broker gives no sign of life"

    def _condition(self) -> Condition | None:
        return last_condition(self._root, within_s=self._within_s, clock=self._clock)

    def _is_fresh(self, name: str) -> bool:
        try:
            age_s = self._clock() - (self._root / name).stat().st_mtime
        except OSError:  # missing or inaccessible: nothing shows that it is in force
            return False
        return -_CLOCK_SLACK_S <= age_s <= self._within_s


class PauseFile:
    """Our pause file, below the node's root."""

    def __init__(self, root: Path) -> None:
        self._path = root / PAUSE_FOLDER / OURS

    def say(self, why: str | None) -> bool:
        """Write the reason, or remove the file for None; returns whether that is a change."""
        if why == self._said():
            return False
        if why is None:
            self._path.unlink(missing_ok=True)
            return True
        self._path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(self._path, f"{why}\n".encode(), mode=0o644)
        return True

    def _said(self) -> str | None:
        try:
            return self._path.read_text().strip()
        except FileNotFoundError:
            return None
