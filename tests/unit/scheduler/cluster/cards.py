"""A cluster with the real allocator of cards and the real dialect."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace

from partage_cli.simulation.policies import decider_with
from partage_plugins.api import GPU, Allocation, Card, CardHealth, NodeName, PodRequest, Reads, Ready, keys
from partage_plugins.codecs import CRIT
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.cluster import Asks, Cluster, Unknown
from partage_scheduler.objects import ApiNode, ApiPod, seen
from partage_scheduler.predicates.needs import needs
from support.gpu_fleet import GIB, card
from support.objects import READY, allocation, grant, node, of_cards
from unit.scheduler.cluster.stage import Noted, Told, trusted

_READS = Reads(crit=CRIT)


def carded(
    name: str,
    *healths: str | CardHealth,
    ready: Ready = READY,
    reads: Reads = _READS,
    beyond_gib: int = 0,
    **fields: object,
) -> ApiNode:
    """A node with a card of 16 GiB for each health, and `beyond_gib` beyond each."""
    made = (card(f"{name}-{place}", beyond_bytes=beyond_gib * GIB) for place in range(len(healths)))
    cards = tuple(_ailing(each, health) for each, health in zip(made, healths, strict=True))
    return node(name, of_cards(cards, ready=ready, reads=reads), **fields)  # type: ignore[arg-type]


def _ailing(one: Card, health: str | CardHealth) -> Card:
    """A text is the health from a writer that gives no cause."""
    return one.being(health) if isinstance(health, CardHealth) else replace(one, health=health)


def granted(uid: str, on: str, place: int, milli: int) -> Allocation:
    """An allocation of `milli` and as much of the memory of one card."""
    memory = 16 * GIB * milli // 1000
    return allocation(uid, on, grant(f"{on}-{place}", milli, memory=memory))


def asks_of(framework: SchedulerFramework) -> Callable[[ApiPod], Unknown | None]:
    """Reads, in the native dialect, the requests of pods without an allocation."""
    return Asks(framework.requests, (keys.PREFIX,)).of


class Cards:
    def __init__(self) -> None:
        self.decider, self.framework = decider_with("binpack")
        self.rules = Noted()
        self.events: list[tuple[str, str]] = []
        believed = partial(trusted, kind=GPU)
        self.cluster = Cluster(self.decider, self.rules, trusted=believed, asks=asks_of(self.framework), told=self.told)
        self.event_handlers = Told(self.cluster)

    def told(self, pod: ApiPod, words: str) -> None:
        self.events.append((pod.name, words))

    def request(self, pod: ApiPod) -> PodRequest:
        return replace(self.framework.requests(seen(pod)), needs=needs(pod))

    def decide(self, pod: ApiPod, now: float = 0.0) -> object:
        """The node and the grants, or None. Nothing is taken."""
        request = self.request(pod)
        return self.decider.decide(request, self.cluster.barred(pod, request, now))

    def left(self, name: str) -> list[tuple[int, int]]:
        """Free milli and GiB of each card of a node; -1 for cards that are not allocatable."""
        slot = self.decider.slots.of(NodeName(name))
        assert slot is not None
        plugin = next(each.plugin for each in vars(self.framework)["_registry"].implementations("partage_fits"))
        counted = plugin.cluster.nodes[slot]
        return list(zip(counted.share_left, (memory // GIB for memory in counted.memory_left), strict=True))

    def books(self, now: float) -> dict[str, object]:
        """The cluster's whole state, without slots, which depend on the order of events."""
        names = sorted(each.name for each in self.cluster.fleet.nodes)
        return {
            "free": {name: self.decider.free(name) for name in names},
            "left": {name: self.left(name) for name in names},
            "holders": {
                name: {pod.uid: allocation for pod, allocation in self.cluster.holders(name)} for name in names
            },
            "rules": self.rules.state(),
            "flagged": dict(self.cluster.verified.flagged),
            "taking part": {name: self.cluster.fleet.why_not(name, now) for name in names},
        }
