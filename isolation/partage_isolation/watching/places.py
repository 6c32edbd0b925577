"""Looks at what a process sees at our places: what was mounted there, and nothing else.

Blocks on /proc. The runtime mounts where an image's links lead, so a place that looks wrong is looked for there. Only
links that lie on the container's root are followed: what a process mounts itself may hold up whoever reads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from partage_isolation.watching.installed import Installed
from partage_isolation.watching.links import led_to
from partage_isolation.watching.proofs import MountLine, mounts, topmost, wrong_places
from partage_plugins.vocabulary.names import ContainerKey


class Places:
    """Of one node."""

    def __init__(self, installed: Installed, proc: Path) -> None:
        self._installed, self._proc = installed, proc
        self._known: dict[tuple[ContainerKey, str], tuple[str, ...]] = {}
        """Wrong places by container and mount namespace, for one look."""

    def look(self) -> None:
        """Another look begins."""
        self._known.clear()

    def wrong(self, pid: int, key: ContainerKey, *, with_links: bool) -> tuple[str, ...] | None:
        """None: it could not be seen."""
        process = self._proc / str(pid)
        try:
            which = key, str((process / "ns/mnt").readlink())
            if which not in self._known:
                seen = mounts((process / "mountinfo").read_text(errors="replace"))
                wrong = self._judged(process, seen, key, with_links=with_links)
                if wrong is None:
                    return None
                self._known[which] = wrong
        except OSError:  # it is gone, or is dying
            return None
        return self._known[which]

    def _judged(
        self, process: Path, seen: Sequence[MountLine], key: ContainerKey, *, with_links: bool
    ) -> tuple[str, ...] | None:
        expected = self._installed.expected(key)
        wrong = wrong_places(seen, expected)
        if not wrong or not with_links:
            return wrong
        led = [replace(one, point=led_to(one.point, lambda path: _link(process, seen, path))) for one in expected]
        wrong = wrong_places(seen, led) or ()
        return tuple(one.point for one, at in zip(expected, led, strict=True) if at.point in wrong)


def _link(process: Path, seen: Sequence[MountLine], path: str) -> str | None:
    """What a link of the image names; None for everything else."""
    on = topmost(seen, path)
    if on is None or on.point != "/":
        return None
    try:
        return str((process / f"root{path}").readlink())
    except OSError:
        return None
