"""The broker's metrics for Prometheus: counted continuously, read at each scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from partage_base.daemon.exposition import Family, Sample
from partage_base.daemon.fairness import fair_part
from partage_base.daemon.metrics import Metrics
from partage_isolation.audit.facts import CardLimits, ContainerFacts, MigrationFacts
from partage_isolation.ledger.samples import ContextSizes
from partage_isolation.timeslices.line import Shares, Windows
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import CardId, grantee_of


@dataclass(slots=True)
class Counters:
    """Counters since the broker was started."""

    packets: int = 0
    wrong: int = 0
    disarmed: int = 0
    turned_away: int = 0
    unread: int = 0
    """Connections that were closed because their client did not read."""
    deferred: int = 0
    recalls: int = 0
    unanswered: int = 0
    """Notifications without a reply in time."""
    hellos: Counter[str] = field(default_factory=Counter[str])
    samples: Counter[str] = field(default_factory=Counter[str])
    sample_seconds: float = 0.0


MOST_CONTAINERS: Final = 1024
"""Limit for one scrape: users choose how many there are, and their names."""
_COUNTED: Final[tuple[tuple[str, str, Callable[[Shares], float]], ...]] = (
    (
        "partage_container_compute_wanted_seconds_total",
        "Time in which it held the card or waited.",
        lambda time: time.wanted_ns / 1e9,
    ),
    (
        "partage_container_compute_got_seconds_total",
        "Time in which it held the card.",
        lambda time: time.got_ns / 1e9,
    ),
    ("partage_container_leases_total", "How often it was its turn.", lambda time: time.timeslices),
    ("partage_container_lease_revocations_total", "Time slices ended early for others.", lambda time: time.revocations),
    (
        "partage_container_drains_total",
        "Ends of time slices at which work was waited for.",
        lambda time: time.drains.count,
    ),
    (
        "partage_container_drain_seconds_total",
        "Time spent waiting at ends of time slices.",
        lambda time: time.drains.sum_ns / 1e9,
    ),
    (
        "partage_container_overlaps_total",
        "Time slices whose work was not waited for longer.",
        lambda time: time.overlaps,
    ),
)


class Labelled(Protocol):
    def __call__(self, facts: ContainerFacts, card: CardId, value: float, **more: str) -> Sample: ...


def times(containers: Iterable[ContainerFacts], sample: Labelled) -> Iterator[Family]:
    """Families of metered cards."""
    rows = [(each, *row) for each in containers for row in _metered(each)]
    share = [sample(each, card, limits.spec.share_in_force / WHOLE_MILLI) for each, card, limits, _ in rows]
    limit = [sample(each, card, limits.spec.limit_in_force / WHOLE_MILLI) for each, card, limits, _ in rows]
    wanted = [each for facts, card, _, time in rows for each in _one(facts, card, time.wanted, sample)]
    got = [each for facts, card, _, time in rows for each in _one(facts, card, time.got, sample)]
    yield Family(
        "partage_container_compute_share_ratio", "gauge", "What it is guaranteed of a card's time.", tuple(share)
    )
    yield Family(
        "partage_container_compute_limit_ratio", "gauge", "Most of a card's time that it may get.", tuple(limit)
    )
    yield Family(
        "partage_container_compute_wanted_ratio",
        "gauge",
        "Part of the window in which it held the card or waited.",
        tuple(wanted),
    )
    yield Family(
        "partage_container_compute_got_ratio", "gauge", "Part of the window in which it held the card.", tuple(got)
    )
    for name, sentence, value in _COUNTED:
        counted = [sample(each, card, value(time)) for each, card, _, time in rows]
        yield Family(name, "counter", sentence, tuple(counted))


def of_each_budget(containers: Iterable[ContainerFacts]) -> list[ContainerFacts]:
    """One entry for each budget, under its own name, so that a sum over containers counts nothing twice."""
    return list({each.budget: _as_budget(each) for each in containers}.values())


def _as_budget(facts: ContainerFacts) -> ContainerFacts:
    return facts if facts.budget_name is None else replace(facts, container=grantee_of(facts.budget_name))


def _metered(facts: ContainerFacts) -> Iterator[tuple[CardId, CardLimits, Shares]]:
    return ((card, limits, limits.time) for card, limits in facts.cards.items() if limits.time is not None)


def _one(facts: ContainerFacts, card: CardId, windows: Windows, sample: Labelled) -> list[Sample]:
    values = {"1s": windows.s1, "10s": windows.s10, "60s": windows.s60}
    return [sample(facts, card, value, window=window) for window, value in values.items()]


class BrokerFigures:
    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        metrics: Metrics,
        *,
        node: str,
        counters: Counters,
        facts: Callable[[], tuple[ContainerFacts, ...]],
        sizes: ContextSizes,
        free_rows: Callable[[], int],
        refused_rows: Callable[[], int],
    ) -> None:
        self._node, self._facts, self._sizes = node, facts, sizes
        metrics.collect(self._of_containers_and_contexts)
        metrics.read_gauge(
            "partage_broker_sessions", "Processes of containers, by state.", self._sessions, label="state"
        )
        metrics.read_gauge("partage_broker_free_rows", "Room in the file of rows.", free_rows)
        metrics.read_counter(
            "partage_broker_refused_rows_total",
            "Rows that containers did not get, since they or their namespace have too many.",
            refused_rows,
        )
        _count(metrics, counters)

    def _of_containers_and_contexts(self) -> Iterator[Family]:
        there = self._facts()
        facts = fair_part(there, MOST_CONTAINERS, lambda each: each.pod.namespace)
        unshown = (Sample(len(there) - len(facts)),)
        yield Family("partage_broker_unshown_containers", "gauge", "Containers that are not shown.", unshown)
        yield from self._of_containers(facts)
        yield from times(of_each_budget(facts), self._sample)
        models = {self._sizes.model_of(card) for each in facts for card in each.cards}
        sizes = [Sample(size, {"model": model}) for model, size in self._sizes.known.items() if model in models]
        yield Family("partage_broker_context_bytes", "gauge", "What a context takes, as learned.", tuple(sizes))

    def _of_containers(self, facts: Sequence[ContainerFacts]) -> Iterator[Family]:
        rows = [(each, card, limits) for each in of_each_budget(facts) for card, limits in each.cards.items()]
        limit = [self._sample(each, card, limits.spec.memory_in_force) for each, card, limits in rows]
        charged = [self._sample(each, card, limits.charged) for each, card, limits in rows]
        used = [self._sample(each, card, each.used(card)) for each in facts for card in each.cards]
        overhead = [self._sample(each, card, each.overhead(card)) for each in facts for card in each.cards]
        refused = [self._sample(each, card, limits.refused) for each, card, limits in rows]
        yield Family("partage_container_memory_limit_bytes", "gauge", "What it may hold of a card.", tuple(limit))
        yield Family(
            "partage_container_memory_charged_bytes", "gauge", "Memory counted against its limit.", tuple(charged)
        )
        yield Family("partage_container_memory_used_bytes", "gauge", "Memory by its programs' account.", tuple(used))
        yield Family(
            "partage_container_memory_overhead_bytes", "gauge", "Memory in contexts and similar.", tuple(overhead)
        )
        yield Family(
            "partage_container_refused_allocations_total",
            "counter",
            "How often more was asked for than the limit allows.",
            tuple(refused),
        )
        yield from self._of_moves([(each, card, one) for each, card, limits in rows if (one := limits.moving)])

    def _of_moves(self, rows: Sequence[tuple[ContainerFacts, CardId, MigrationFacts]]) -> Iterator[Family]:
        """Families of containers with movable memory."""
        moved = [self._sample(each, card, one.moved) for each, card, one in rows]
        times_out = [self._sample(each, card, one.times) for each, card, one in rows]
        seconds = [self._sample(each, card, one.spent_ns / 1e9) for each, card, one in rows]
        yield Family("partage_container_memory_moved_bytes", "gauge", "Memory moved to the host.", tuple(moved))
        yield Family(
            "partage_container_moves_total", "counter", "How often it had to leave its card.", tuple(times_out)
        )
        yield Family(
            "partage_container_moving_seconds_total", "counter", "Time that its memory was on the way.", tuple(seconds)
        )

    def _sessions(self) -> Mapping[str, float]:
        states = Counter[str]({"live": 0, "detached": 0, "unconfirmed": 0, "dead": 0})
        states.update(process.state for each in self._facts() for process in each.processes)
        return dict[str, float](states)

    def _sample(self, facts: ContainerFacts, card: CardId, value: float, **more: str) -> Sample:
        return Sample(
            value,
            {
                "node": self._node,
                "device_uuid": card,
                "model": self._sizes.model_of(card),
                "namespace": facts.pod.namespace,
                "pod": facts.pod.name,
                "container": facts.container,
                **more,
            },
        )


def _count(metrics: Metrics, seen: Counters) -> None:
    for name, sentence, read in (
        ("partage_broker_packets_total", "Packets of containers.", lambda: seen.packets),
        ("partage_broker_wrong_packets_total", "Packets that made no sense.", lambda: seen.wrong),
        ("partage_broker_disarmed_total", "Times a connection was not read for a moment.", lambda: seen.disarmed),
        ("partage_broker_turned_away_total", "Connections that were not taken.", lambda: seen.turned_away),
        ("partage_broker_unread_total", "Connections ended since their client did not read.", lambda: seen.unread),
        ("partage_broker_parked_total", "Questions that had to wait.", lambda: seen.deferred),
        ("partage_broker_recalls_total", "Hints to give back unused credit.", lambda: seen.recalls),
        ("partage_broker_unanswered_total", "Hints without a reply in time.", lambda: seen.unanswered),
        ("partage_broker_sample_seconds_total", "Time that NVML took for samples.", lambda: seen.sample_seconds),
    ):
        metrics.read_counter(name, sentence, read)
    metrics.read_counter("partage_broker_hellos_total", "Processes that came.", lambda: seen.hellos, label="outcome")
    metrics.read_counter("partage_broker_samples_total", "Samples of NVML.", lambda: seen.samples, label="outcome")
