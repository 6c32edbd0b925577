"""Sets containers' memory limits in the driver itself, where it supports that.

This is a second line of defense: the broker lends no more than before, and a program that bypasses the library gets no
more than its container's limit either. Nothing else depends on the driver's result. A driver without support is not
called again; after a failure it is retried later; and for a new child all limits are set again, since its driver may be
another one.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import structlog

from partage_base.daemon.logs import Repeats
from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_isolation.audit.nvml_messages import LONGEST_GROUP, Limited
from partage_isolation.audit.proofs import group_of, shared_hierarchy
from partage_plugins.api.names import CardId, ContainerKey

AGAIN_S: Final = 300.0
_SAID_AGAIN_S: Final = 3600.0
_CANNOT: Final = frozenset((3, 13))
"""NVML's "not supported" and "no such function": permanent for this card."""
_MIG: Final = "MIG-"
"""The driver holds no limits for MIG instances."""
_log: Final = structlog.get_logger()


class Limiter(Protocol):
    """The interface that sets limits in the driver; see `NvmlChild`."""

    @property
    def limiting(self) -> object | None:
        """A different object for a different driver; None if it supports no limits."""
        ...

    async def limit(self, card: CardId, group: Path, limit_bytes: int) -> Limited | None: ...


class Place(NamedTuple):
    key: ContainerKey
    card: CardId
    group: Path


@dataclass
class _Told:
    """Limits that one driver was given."""

    driver: object | None = None
    held: dict[Place, int] = field(default_factory=dict[Place, int])
    failed_s: dict[Place, float] = field(default_factory=dict[Place, float])
    cannot: set[CardId] = field(default_factory=set[CardId])


class DriverLimits:
    def __init__(
        self,
        limiter: Limiter,
        *,
        context_in_limit: bool = True,
        proc: Path = Path("/proc"),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The driver counts contexts, so it can't hold limits that exclude them."""
        self._limiter, self._is_wanted, self._proc, self._clock = limiter, context_in_limit, proc, clock
        self._told = _Told()
        self._groups: dict[str, Path] = {}
        self._repeats = Repeats(every_s=_SAID_AGAIN_S)
        self._one_at_a_time = asyncio.Lock()

    def held(self, key: ContainerKey, card: CardId) -> int | None:
        """The driver's limit of a card for a container; None if none was set."""
        return next((held for place, held in self._told.held.items() if (place.key, place.card) == (key, card)), None)

    async def look(self, containers: Callable[[], Iterable[ContainerFacts]], listed: Listing) -> None:
        """Set the limits that are in force now."""
        async with self._one_at_a_time:
            if self._can():
                await self._hold(containers(), listed)

    async def _hold(self, containers: Iterable[ContainerFacts], listed: Listing) -> None:
        told, wanted = self._told, dict(self._wanted(containers, listed))
        self._groups = {one.id: self._groups[one.id] for one in listed.values() if one.id in self._groups}
        told.held = {place: held for place, held in told.held.items() if place in wanted}
        told.failed_s = {place: at for place, at in told.failed_s.items() if place in wanted}
        news = [(place, limit) for place, limit in wanted.items() if told.held.get(place) != limit]
        await asyncio.gather(*(self._tell(told, *each) for each in news if self._may_ask(each[0])))

    async def permit(self, keys: Collection[ContainerKey], card: CardId, limit_bytes: int) -> None:
        """Raise limits before the broker lends this much: the driver must not refuse what the broker lends."""
        if not self._told.held:
            return
        async with self._one_at_a_time:
            told, held = self._told, self._told.held
            lower = [each for each in held if each.key in keys and each.card == card and held[each] < limit_bytes]
            await asyncio.gather(*(self._tell(told, place, limit_bytes) for place in lower))

    def _can(self) -> bool:
        driver = self._limiter.limiting if self._is_wanted else None
        if driver is not self._told.driver:
            self._told = _Told(driver)
        return driver is not None

    def _may_ask(self, place: Place) -> bool:
        failed_s = self._told.failed_s.get(place)
        return place.card not in self._told.cannot and (failed_s is None or self._clock() - failed_s >= AGAIN_S)

    async def _tell(self, told: _Told, place: Place, limit_bytes: int) -> None:
        answer = await self._limiter.limit(place.card, place.group, limit_bytes)
        if answer is not None and answer.number == 0:
            told.held[place] = limit_bytes
            told.failed_s.pop(place, None)
        elif answer is not None and answer.number in _CANNOT:
            told.cannot.add(place.card)
        else:
            why = "it does not answer" if answer is None else answer.why
            told.failed_s[place] = self._clock()
            what = "the driver does not hold a container to its memory too; partage does as ever"
            self._repeats.say(what, key=(place.card, why), card=place.card, container=place.key, why=why)

    # ---- Cgroups of containers ---------------------------------------------------------------------------------------

    def _wanted(self, containers: Iterable[ContainerFacts], listed: Listing) -> Iterator[tuple[Place, int]]:
        for facts in containers:
            groups = (self._group(container) for container in listed.of(facts.key) if container.running)
            for group in (each for each in groups if each is not None):
                for card, limits in facts.cards.items():
                    if not card.startswith(_MIG):
                        yield Place(facts.key, card, group), limits.spec.memory_in_force

    def _group(self, container: RuntimeContainer) -> Path | None:
        if container.id not in self._groups and container.pid is not None:
            try:
                top = shared_hierarchy((self._proc / "self/mountinfo").read_text())
                group = group_of((self._proc / str(container.pid) / "cgroup").read_text(), container.id)
            except (OSError, UnicodeDecodeError):  # it is gone
                return None
            if top is not None and group is not None and len(f"{top}/{group}".encode()) <= LONGEST_GROUP:
                self._groups[container.id] = Path(top, group)
        return self._groups.get(container.id)
