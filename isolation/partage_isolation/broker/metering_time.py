"""What containers wanted and got of cards' time, as Prometheus wants it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, Protocol

from partage_base.daemon.exposition import Family, Sample
from partage_isolation.broker.facts import CardLimits, ContainerFacts
from partage_isolation.leasing.acts import Shares, Windows
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.names import CardId

_COUNTED: Final[tuple[tuple[str, str, Callable[[Shares], float]], ...]] = (
    ("partage_container_leases_total", "How often it was its turn.", lambda time: time.leases),
    ("partage_container_lease_revocations_total", "Leases ended early for others.", lambda time: time.revocations),
    ("partage_container_drains_total", "Ends of leases at which work was waited for.", lambda time: time.drains.count),
    ("partage_container_drain_seconds_total", "Time for which it was.", lambda time: time.drains.sum_ns / 1e9),
    ("partage_container_overlaps_total", "Leases whose work was not waited for longer.", lambda time: time.overlaps),
)


class Labelled(Protocol):
    """Makes a sample of one container on one card."""

    def __call__(self, facts: ContainerFacts, card: CardId, value: float, **more: str) -> Sample:
        """With its labels, and these."""
        ...


def times(containers: Iterable[ContainerFacts], sample: Labelled) -> Iterator[Family]:
    """Nothing of cards that nobody meters."""
    rows = [(each, *row) for each in containers for row in _metered(each)]
    share = [sample(each, card, limits.share / WHOLE_MILLI) for each, card, limits, _ in rows]
    limit = [sample(each, card, limits.limit / WHOLE_MILLI) for each, card, limits, _ in rows]
    wanted = [each for facts, card, _, time in rows for each in _one(facts, card, time.wanted, sample)]
    got = [each for facts, card, _, time in rows for each in _one(facts, card, time.got, sample)]
    yield _gauge("partage_container_compute_share_ratio", "What it is guaranteed of a card's time.", share)
    yield _gauge("partage_container_compute_limit_ratio", "What it may get of it at most.", limit)
    yield _gauge("partage_container_compute_wanted_ratio", "In which it held the card or waited.", wanted)
    yield _gauge("partage_container_compute_got_ratio", "In which it held the card.", got)
    for name, sentence, value in _COUNTED:
        counted = [sample(each, card, value(time)) for each, card, _, time in rows]
        yield Family(name, "counter", sentence, tuple(counted))


def _metered(facts: ContainerFacts) -> Iterator[tuple[CardId, CardLimits, Shares]]:
    return ((card, limits, limits.time) for card, limits in facts.cards.items() if limits.time is not None)


def _one(facts: ContainerFacts, card: CardId, windows: Windows, sample: Labelled) -> list[Sample]:
    values = {"1s": windows.s1, "10s": windows.s10, "60s": windows.s60}
    return [sample(facts, card, value, window=window) for window, value in values.items()]


def _gauge(name: str, sentence: str, samples: Iterable[Sample]) -> Family:
    return Family(name, "gauge", sentence, tuple(samples))
