"""Inspects processes of containers, including those that have a card's device open but appear on no card yet.

Inspecting every process of a node costs too much for each audit, so a few are inspected each time, in rotation.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from partage_isolation.audit.facts import ProcessFacts
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.mounts import MOST_MAPS, InstalledFiles, Places, TooLong, read_bounded
from partage_isolation.audit.proofs import Birth, birth, container_of, executes
from partage_isolation.audit.suspicions import MAPPINGS, MOUNTS, Sight
from partage_isolation.store.folders import INSIDE, LIBRARY, OBJECTS
from partage_plugins.api.names import ContainerKey

_DEVICES: Final = "/dev/nvidia"
_MOST_DESCRIPTORS: Final = 1024
_MOST_PROCESSES: Final = 64


class Holders:
    def __init__(self, proc: Path) -> None:
        self._proc = proc
        self._turn: list[int] = []
        self.members: dict[str, int] = {}
        """A process of each container, as far as the rotation has come; it may be gone by now."""

    def some(self, containers: Container[str]) -> Iterator[int]:
        """The next few of all processes that are in these containers and hold a device."""
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


_LIBRARY: Final = f"{INSIDE}/{LIBRARY}/{OBJECTS[0]}"
_AGAIN_S: Final = 30.0
_MOST_AGAIN: Final = 32
"""Maximum per inspection; the others wait for the next."""
_FIRST_AGAIN_S: Final = 5.0


@dataclass(frozen=True)
class Wanted:
    """Processes and containers to inspect."""

    pids: Iterable[int]
    """On cards."""
    containers: Listing
    """As last listed by the runtime."""
    prepared: AbstractSet[ContainerKey]
    """Those of them that were prepared by the broker."""
    rows: Mapping[int, tuple[ProcessFacts, ...]]


@dataclass(frozen=True)
class Scan:
    sights: Mapping[int, Sight]
    first_seen: Mapping[str, Sight]
    """By the runtime's ids."""
    gone: frozenset[int]


class Engagement:
    def __init__(
        self, installed: InstalledFiles, *, proc: Path = Path("/proc"), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._installed, self._proc, self._clock = installed, proc, clock
        self._proved: dict[int, tuple[Sight, float]] = {}
        self._blocking: dict[int, Birth] = {}
        self._firsts: dict[str, tuple[Sight, float]] = {}
        self._holders, self._places = Holders(proc), Places(installed, proc)
        self._wrong: frozenset[int] = frozenset()
        self._again = 0
        self._looks_at: tuple[int, Birth] | None = None

    def give_up(self) -> int | None:
        """Abandon an inspection that takes too long; return its process, whose maps and links are no longer read."""
        looks_at = self._looks_at
        if looks_at is None:
            return None
        self._blocking = {**self._blocking, looks_at[0]: looks_at[1]}
        return looks_at[0]

    def look(self, wanted: Wanted) -> Scan:
        """Inspect now. Raises OSError if even the broker's own mounts can't be read."""
        self._installed.look()
        self._places.look()
        self._again = 0
        listed = wanted.containers
        self._firsts = {id_: first for id_, first in self._firsts.items() if id_ in listed}
        prepared = {id_: one for id_, one in listed.items() if one.key in wanted.prepared}
        running = {id_: self._some_pid(one) for id_, one in prepared.items() if one.running}
        first_seen = {id_: first for id_, pid in running.items() if pid and (first := self._first(id_, pid, listed))}
        sights = {pid: sight for pid in wanted.pids if (sight := self._seen(pid, wanted)) is not None}
        sights |= self._held(set(self._holders.some(prepared)) - sights.keys(), listed)
        self._proved = {pid: proved for pid, proved in self._proved.items() if pid in sights}
        self._blocking = {pid: born for pid, born in self._blocking.items() if pid in sights}
        return Scan(sights, first_seen, frozenset(self._gone(wanted.rows)))

    def _some_pid(self, container: RuntimeContainer) -> int | None:
        return container.pid or self._holders.members.get(container.id)

    def _first(self, id_: str, pid: int, listed: Listing) -> Sight | None:
        """Inspect only the mounts of a container's first process; None if it is no longer in this container."""
        sight, proved_s = self._firsts.get(id_, (None, 0.0))
        if sight is not None and sight.pid == pid and self._clock() - proved_s < _FIRST_AGAIN_S:
            return sight
        sight = self._looked_at(pid, listed, with_maps=False)
        if sight is None or sight.container != id_:
            return None
        if sight.wrong_places == ():
            self._firsts[id_] = sight, self._clock()
        return sight

    def _held(self, pids: AbstractSet[int], listed: Listing) -> dict[int, Sight]:
        """Inspect only the mounts of processes that have a card's device open; repeated while these are wrong."""
        looked = ((pid, self._looked_at(pid, listed, with_maps=False)) for pid in pids | self._wrong)
        sights = {pid: sight for pid, sight in looked if sight is not None and (sight.wrong_places or sight.too_long)}
        self._wrong = frozenset(sights)
        return sights

    def _seen(self, pid: int, wanted: Wanted) -> Sight | None:
        sight, proved_s = self._proved.get(pid, (None, 0.0))
        if sight is not None and _is_connected(sight, wanted.rows):
            if self._clock() - proved_s < _AGAIN_S or self._again >= _MOST_AGAIN:
                return sight
            self._again += 1
        self._proved.pop(pid, None)
        sight = self._looked_at(pid, wanted.containers)
        if sight is not None and sight.has_library and sight.wrong_places == ():
            self._proved[pid] = sight, self._clock()
        return sight

    def _looked_at(self, pid: int, listed: Listing, *, with_maps: bool = True) -> Sight | None:
        """Inspect a process; None if it is gone, or became another one meanwhile."""
        born = self._birth(pid)
        if born is None:
            return None
        self._looks_at = pid, born
        id_ = container_of(self._text(pid, "cgroup") or "", listed)
        container = listed[id_] if id_ is not None else None
        is_quick = self._blocking.get(pid) != born
        library, wrong, too_long = None, None, list[str]()
        if container is not None:
            with _noted(MAPPINGS, too_long):
                library = self._has_library(pid) if with_maps and is_quick else None
            with _noted(MOUNTS, too_long):
                wrong = self._places.wrong(pid, container, with_links=is_quick)
        self._looks_at = None
        if self._birth(pid) != born:
            return None
        key = None if container is None else container.key
        return Sight(pid, born, id_, key, library, wrong, tuple(too_long))

    def _birth(self, pid: int) -> Birth | None:
        return birth(self._text(pid, "stat") or "")

    def _has_library(self, pid: int) -> bool | None:
        """Whether the process maps the library; None if unknown. Raises `TooLong`."""
        ours = self._installed.libraries
        if not ours:
            return None
        try:
            maps = read_bounded(self._proc / str(pid) / "maps", MOST_MAPS)
        except OSError:  # it is gone, or is dying
            maps = ""
        return executes(maps, ours, path=_LIBRARY)

    def _gone(self, rows: Mapping[int, tuple[ProcessFacts, ...]]) -> Iterable[int]:
        """Dead processes among those that are not connected: a connected process is alive."""
        for pid, ones in rows.items():
            if not any(row.connected for row in ones):
                born = self._birth(pid)
                if born is None or all(row.start != born.start for row in ones):
                    yield pid

    def _text(self, pid: int, name: str) -> str | None:
        try:
            return (self._proc / str(pid) / name).read_text(errors="replace")
        except OSError:  # it is gone, or is dying
            return None


@contextmanager
def _noted(what: str, too_long: list[str]) -> Generator[None]:
    try:
        yield
    except TooLong:
        too_long.append(what)


def _is_connected(sight: Sight, rows: Mapping[int, tuple[ProcessFacts, ...]]) -> bool:
    return any(row.connected and row.start == sight.birth.start for row in rows.get(sight.pid, ()))
