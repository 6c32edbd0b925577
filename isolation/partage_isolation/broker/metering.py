"""The broker's figures, as Prometheus wants them: read when somebody asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from partage_base.daemon.exposition import Family, Sample
from partage_base.daemon.metrics import Registry
from partage_isolation.broker.counters import Counters
from partage_isolation.broker.facts import CardLimits, ContainerFacts
from partage_isolation.broker.learning import ContextSizes
from partage_isolation.broker.metering_time import times
from partage_plugins.vocabulary.names import CardId


class Figures:
    """All of one broker."""

    def __init__(  # noqa: PLR0913  its parts, by name
        self,
        registry: Registry,
        *,
        node: str,
        counters: Counters,
        facts: Callable[[], tuple[ContainerFacts, ...]],
        sizes: ContextSizes,
        free_rows: Callable[[], int],
    ) -> None:
        self._node, self._counters, self._facts = node, counters, facts
        self._sizes, self._free_rows = sizes, free_rows
        registry.register(self)

    def collect(self) -> Iterator[Family]:
        """One look at everything."""
        facts = self._facts()
        yield from self._of_containers(facts)
        yield from times(facts, self._sample)
        yield from self._of_processes(facts)
        yield from self._counted()
        models = {self._sizes.model_of(card) for each in facts for card in each.cards}
        sizes = [Sample(size, {"model": model}) for model, size in self._sizes.known.items() if model in models]
        yield Family("partage_broker_context_bytes", "gauge", "What a context takes, as learned.", tuple(sizes))
        yield _gauge("partage_broker_free_rows", "Room in the file of rows.", self._free_rows())

    def _of_containers(self, facts: Iterable[ContainerFacts]) -> Iterator[Family]:
        rows = [(each, card, limits) for each in facts for card, limits in each.cards.items()]
        limit = [self._sample(each, card, limits.memory) for each, card, limits in rows]
        charged = [self._sample(each, card, limits.charged) for each, card, limits in rows]
        used = [self._sample(each, card, _used(each, card)) for each, card, _ in rows]
        overhead = [self._sample(each, card, _overhead(each, card)) for each, card, _ in rows]
        refused = [self._sample(each, card, _refused(limits)) for each, card, limits in rows]
        yield Family("partage_container_memory_limit_bytes", "gauge", "What it may hold of a card.", tuple(limit))
        yield Family("partage_container_memory_charged_bytes", "gauge", "Counted against that.", tuple(charged))
        yield Family("partage_container_memory_used_bytes", "gauge", "By its programs' account.", tuple(used))
        yield Family("partage_container_memory_overhead_bytes", "gauge", "In contexts and the like.", tuple(overhead))
        sentence = "How often more was asked for than the limit allows."
        yield Family("partage_container_refused_allocations_total", "counter", sentence, tuple(refused))

    def _of_processes(self, facts: Iterable[ContainerFacts]) -> Iterator[Family]:
        states = Counter[str]({"live": 0, "detached": 0, "unconfirmed": 0, "dead": 0})
        states.update(process.state for each in facts for process in each.processes)
        yield _labelled("partage_broker_sessions", "gauge", "Processes of containers, by state.", "state", states)

    def _counted(self) -> Iterator[Family]:
        seen = self._counters
        yield _counter("partage_broker_packets_total", "Packets of containers.", seen.packets)
        yield _counter("partage_broker_wrong_packets_total", "Packets that made no sense.", seen.wrong)
        yield _counter("partage_broker_disarmed_total", "Connections not heard for a moment.", seen.disarmed)
        yield _counter("partage_broker_turned_away_total", "Connections that were not taken.", seen.turned_away)
        yield _counter("partage_broker_unread_total", "Connections ended: nobody read them.", seen.unread)
        yield _counter("partage_broker_parked_total", "Questions that had to wait.", seen.parked)
        yield _counter("partage_broker_recalls_total", "Hints to give back unused credit.", seen.recalls)
        yield _counter("partage_broker_unanswered_total", "Hints without a reply in time.", seen.unanswered)
        yield _labelled("partage_broker_hellos_total", "counter", "Processes that came.", "outcome", seen.hellos)
        yield _labelled("partage_broker_samples_total", "counter", "Samples of NVML.", "outcome", seen.samples)
        yield _counter("partage_broker_sample_seconds_total", "Time that NVML took for them.", seen.sample_seconds)

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


def _refused(limits: CardLimits) -> int:
    return limits.refused


def _counter(name: str, sentence: str, value: float) -> Family:
    return Family(name, "counter", sentence, (Sample(value),))


def _gauge(name: str, sentence: str, value: float) -> Family:
    return Family(name, "gauge", sentence, (Sample(value),))


def _labelled(name: str, kind: str, sentence: str, label: str, values: Mapping[str, int]) -> Family:
    samples = tuple(Sample(count, {label: value}) for value, count in sorted(values.items()))
    return Family(name, "gauge" if kind == "gauge" else "counter", sentence, samples)
