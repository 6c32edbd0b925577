"""The broker's figures, as Prometheus wants them: read when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from partage_base.daemon.exposition import Family, Sample
from partage_base.daemon.metrics import Metrics
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.facts import ContainerFacts
from partage_isolation.broker.learning import ContextSizes
from partage_isolation.broker.metering_time import times
from partage_plugins.vocabulary.names import CardId


class Figures:
    """All of one broker."""

    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        metrics: Metrics,
        *,
        node: str,
        counters: Counters,
        facts: Callable[[], tuple[ContainerFacts, ...]],
        sizes: ContextSizes,
        free_rows: Callable[[], int],
    ) -> None:
        self._node, self._facts, self._sizes = node, facts, sizes
        metrics.collect(self._of_containers_and_contexts)
        metrics.read_gauge(
            "partage_broker_sessions", "Processes of containers, by state.", self._sessions, label="state"
        )
        metrics.read_gauge("partage_broker_free_rows", "Room in the file of rows.", free_rows)
        _count(metrics, counters)

    def _of_containers_and_contexts(self) -> Iterator[Family]:
        """From one look at the containers."""
        facts = self._facts()
        yield from self._of_containers(facts)
        yield from times(facts, self._sample)
        models = {self._sizes.model_of(card) for each in facts for card in each.cards}
        sizes = [Sample(size, {"model": model}) for model, size in self._sizes.known.items() if model in models]
        yield Family("partage_broker_context_bytes", "gauge", "What a context takes, as learned.", tuple(sizes))

    def _of_containers(self, facts: Iterable[ContainerFacts]) -> Iterator[Family]:
        rows = [(each, card, limits) for each in facts for card, limits in each.cards.items()]
        limit = [self._sample(each, card, limits.memory) for each, card, limits in rows]
        charged = [self._sample(each, card, limits.charged) for each, card, limits in rows]
        used = [self._sample(each, card, _used(each, card)) for each, card, _ in rows]
        overhead = [self._sample(each, card, _overhead(each, card)) for each, card, _ in rows]
        refused = [self._sample(each, card, limits.refused) for each, card, limits in rows]
        yield Family("partage_container_memory_limit_bytes", "gauge", "What it may hold of a card.", tuple(limit))
        yield Family("partage_container_memory_charged_bytes", "gauge", "Counted against that.", tuple(charged))
        yield Family("partage_container_memory_used_bytes", "gauge", "By its programs' account.", tuple(used))
        yield Family("partage_container_memory_overhead_bytes", "gauge", "In contexts and the like.", tuple(overhead))
        sentence = "How often more was asked for than the limit allows."
        yield Family("partage_container_refused_allocations_total", "counter", sentence, tuple(refused))

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


def _used(facts: ContainerFacts, card: CardId) -> int:
    return sum(process.cards[card].used for process in facts.processes if card in process.cards)


def _overhead(facts: ContainerFacts, card: CardId) -> int:
    return sum(process.cards[card].overhead for process in facts.processes if card in process.cards)


def _count(metrics: Metrics, seen: Counters) -> None:
    for name, sentence, read in (
        ("packets", "Packets of containers.", lambda: seen.packets),
        ("wrong_packets", "Packets that made no sense.", lambda: seen.wrong),
        ("disarmed", "Connections not heard for a moment.", lambda: seen.disarmed),
        ("turned_away", "Connections that were not taken.", lambda: seen.turned_away),
        ("unread", "Connections ended since their client did not read.", lambda: seen.unread),
        ("parked", "Questions that had to wait.", lambda: seen.parked),
        ("recalls", "Hints to give back unused credit.", lambda: seen.recalls),
        ("unanswered", "Hints without a reply in time.", lambda: seen.unanswered),
        ("sample_seconds", "Time that NVML took for samples.", lambda: seen.sample_seconds),
    ):
        metrics.read_counter(f"partage_broker_{name}_total", sentence, read)
    metrics.read_counter("partage_broker_hellos_total", "Processes that came.", lambda: seen.hellos, label="outcome")
    metrics.read_counter("partage_broker_samples_total", "Samples of NVML.", lambda: seen.samples, label="outcome")
