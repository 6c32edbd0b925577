"""Gangs from the queue to their nodes: despite failures, no gang waits for what another one holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_plugins.api import Gang, Namespace, NodeName
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.cycle import Bind, spans_nodes
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Queue, QueueSettings, Waiting
from support.objects import given as noted
from support.objects import pod
from unit.scheduler.test_deciding_on_pods import NOW, Stage

AGAIN = frozenset((ClusterEvent.TIME,))
ROUNDS = 60
"""Each is longer than any backoff."""


@dataclass
class Chain:
    """Queue, scheduling cycle and bindings, some of which fail; a complete gang runs for one round."""

    stage: Stage
    fails: Callable[[], bool]
    now: float = 0.0
    on: dict[str, ApiPod] = field(default_factory=dict[str, ApiPod])
    whole: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self.queue = Queue(QueueSettings(gang_timeout_s=1e9), placed_on=self.stage.cluster.placed_pods.placed_on)

    def round(self) -> None:
        self.now += 11.0
        for node in self.stage.cluster.fleet.nodes:
            self.queue.happened(self.stage.cluster.heartbeat(node.name, self.now, self.now), self.now)
        while (waiting := self.queue.next(self.now)) is not None:
            verdicts = self.stage.cycle.decide(waiting, self.now)
            binds = [each for each in verdicts if isinstance(each, Bind)]
            assert len(binds) in {0, len(verdicts)}, "all or none"
            for verdict in verdicts:
                if not isinstance(verdict, Bind):
                    self.queue.failed(verdict.pod.uid, verdict.cluster_events, self.now)
            for bind in binds:
                self.bind(bind)
        self.end_what_is_whole()

    def bind(self, bind: Bind) -> None:
        cluster, each = self.stage.cluster, bind.pod
        if self.fails():
            self.queue.happened(cluster.undo(each.uid), self.now)
            cluster.keep_for_gang(each, bind.decision)
            self.queue.failed(each.uid, AGAIN, self.now)
            return
        notes = {**each.metadata.annotations, **noted(bind.decision.allocation)}
        there = replace(
            each,
            metadata=replace(each.metadata, annotations=notes),
            spec=replace(each.spec, node_name=bind.decision.node),
        )
        self.on[each.name] = there
        self.queue.withdraw(each.uid)
        self.queue.happened(cluster.pod(there), self.now)

    def end_what_is_whole(self) -> None:
        gangs: dict[str, list[ApiPod]] = {}
        for each in self.on.values():
            gangs.setdefault(each.name.rpartition("-")[0], []).append(each)
        for name, pods in gangs.items():
            if len(pods) == int(pods[0].metadata.annotations.get("partage.dev/gang-size", "1")):
                self.whole.append(name)
                for each in pods:
                    del self.on[each.name]
                    self.queue.happened(self.stage.cluster.pod_gone(each.uid), self.now)


SIZES = st.lists(st.tuples(st.integers(1, 4), st.sampled_from((400, 500, 700, 1000))), min_size=2, max_size=4)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(sizes=SIZES, fails=st.lists(st.booleans(), max_size=40), order=st.randoms(use_true_random=False))
def test_every_gang_is_whole_at_last(
    sizes: list[tuple[int, int]],
    fails: list[bool],
    order: Random,
) -> None:
    """Four cards: room for any one gang, and rarely for two."""
    failures: Iterator[bool] = iter(fails)
    chain = Chain(Stage(m=2, n=2), lambda: next(failures, False))
    pods = [
        pod(f"{gang}-{number}", gang=str(gang), size=size, milli=milli, created=gang)
        for gang, (size, milli) in enumerate(sizes)
        for number in range(size)
    ]
    order.shuffle(pods)
    for each in pods:
        chain.queue.offer(each, chain.now)
        if order.random() < 0.3:
            chain.round()
    for _ in range(ROUNDS):
        if len(chain.whole) < len(sizes):
            chain.round()
    assert sorted(chain.whole) == [str(gang) for gang in range(len(sizes))]
    assert not chain.on
    assert all(number == 0 for number in chain.queue.sizes().values())


def half_bound() -> Chain:
    """A gang of two, of which one is bound and the other's binding failed; each needs a card, and there are two."""
    results = iter((False, True))
    chain = Chain(Stage(m=2), lambda: next(results, False))
    for number in range(2):
        chain.queue.offer(pod(f"a-{number}", gang="a", size=2, milli=1000), chain.now)
    waiting = chain.queue.next(chain.now)
    assert waiting is not None
    for verdict in chain.stage.cycle.decide(waiting, chain.now):
        assert isinstance(verdict, Bind)
        chain.bind(verdict)
    assert list(chain.on) == ["a-0"]
    return chain


def test_what_a_pod_was_to_have_beside_others_of_its_gang_is_not_given_to_anybody_else() -> None:
    chain = half_bound()
    assert chain.stage.place(pod("other", milli=1000))[0].startswith("0/1 nodes")
    chain.round()
    assert chain.whole == ["a"]


def test_a_pod_of_a_higher_priority_may_have_it() -> None:
    assert half_bound().stage.place(pod("other", milli=1000, priority=1)) == ["m"]


def test_when_nobody_of_the_gang_is_left_nothing_is_kept_for_it() -> None:
    chain = half_bound()
    chain.stage.cluster.pod_gone(chain.on["a-0"].uid)
    assert chain.stage.place(pod("one", milli=1000), pod("two", milli=1000)) == ["m", "m"]


TRAIN = Gang(Namespace("team"), "train", 2)


def told(*nodes: str, before: tuple[str, ...] = (), milli: int = 500) -> str | None:
    """The message for pods bound to `nodes` at once, with others already on `before`."""
    stage = Stage(m=2, n=2, o=2)
    binds = list[Bind]()
    for number, node in enumerate(nodes):
        each = pod(f"p{number}", gang="train", size=2, milli=milli, nodeSelector={"name": node})
        (verdict,) = stage.cycle.decide(Waiting((each,)), NOW)
        assert isinstance(verdict, Bind)
        binds.append(verdict)
    assert stage.cluster.placed_pods.of_gang(TRAIN) == Counter(nodes)
    return spans_nodes(TRAIN, binds, Counter(NodeName(node) for node in (*nodes, *before)))


def test_it_is_told_once_it_is_on_several() -> None:
    words = told("m", "n")
    assert words is not None
    assert words.startswith("gang train is on 2 nodes, and its pods have parts of cards.")


@pytest.mark.parametrize(("node", "is_told"), [("m", False), ("n", False), ("o", True)])
def test_one_that_comes_later_is_news_on_another_node_only(node: str, *, is_told: bool) -> None:
    assert (told(node, before=("m", "n")) is not None) is is_told


def test_it_is_not_told_on_one_node_or_with_whole_cards() -> None:
    assert told("m", "m") is None
    assert told("m", "n", milli=1000) is None
