"""Finds processes of containers: those that have a card's device open, whether or not a card shows them yet.

To look at every process of a node costs too much for each audit, so a few are looked at each time, in turn.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from partage_isolation.watching.proofs import container_of

_DEVICES: Final = "/dev/nvidia"
_MOST_DESCRIPTORS: Final = 1024
_MOST_PROCESSES: Final = 64


class Holders:
    """Of one node."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._turn: list[int] = []
        self.members: dict[str, int] = {}
        """Some process of each container, as far as its turn has come; it may be gone by now."""

    def some(self, containers: Container[str]) -> Iterator[int]:
        """The next few of all processes, as far as they are in these containers and hold a device."""
        if not self._turn:
            self._turn = [int(name) for name in os.listdir(self._proc) if name.isdecimal()]  # noqa: PTH208  names alone
        for pid in (self._turn.pop() for _ in range(min(_MOST_PROCESSES, len(self._turn)))):
            container = self._container(pid, containers)
            if container is not None:
                self.members[container] = pid
                if self._holds_device(pid):
                    yield pid
        self.members = {container: pid for container, pid in self.members.items() if container in containers}

    def _container(self, pid: int, containers: Container[str]) -> str | None:
        try:
            cgroup = (self._proc / str(pid) / "cgroup").read_text(errors="replace")
        except OSError:  # it is gone
            return None
        return container_of(cgroup, containers)

    def _holds_device(self, pid: int) -> bool:
        try:
            with os.scandir(self._proc / str(pid) / "fd") as descriptors:
                return any(_leads_to(one.path).startswith(_DEVICES) for one in islice(descriptors, _MOST_DESCRIPTORS))
        except OSError:
            return False


def _leads_to(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115  many of them
    except OSError:  # it was closed meanwhile
        return ""
