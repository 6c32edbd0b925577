"""For any sequence of events, each queued pod is in exactly one place and comes up after events that concern it."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from partage_plugins.api import Gang, PodUid
from partage_plugins.codecs import read_gang
from partage_scheduler.cluster.cluster_events import ClusterEvent
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Queue, QueueSettings
from partage_scheduler.queue.groups import Place
from support.extent import examples
from support.objects import pod

NAMES = [f"p{number}" for number in range(8)]
MOST_S = 10.0
names = st.sampled_from(NAMES)
cluster_events = st.frozensets(st.sampled_from(list(ClusterEvent)), max_size=3)
gangs = st.sampled_from([None, ("one", 2), ("two", 3)])


class Anything(RuleBasedStateMachine):
    """Offers, gates, gangs, failures, bindings and events; the model knows which events each pod waits for."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.running: dict[Gang, int] = {}
        self.queue = Queue(QueueSettings(gang_timeout_s=30.0), placed_on=lambda gang: self.running.get(gang, 0))
        self.pods: dict[PodUid, ApiPod] = {}
        self.flying: set[PodUid] = set()
        self.awaited: dict[PodUid, frozenset[ClusterEvent]] = {}
        """Events that failed pods without a gang wait for, none of which has happened since."""
        self.owed: set[PodUid] = set()
        """Pods without a gang that must come up: new, changed, or concerned by an event."""

    @staticmethod
    def unit_of(each: ApiPod) -> object:
        gated = bool(each.spec.scheduling_gates)
        return None if gated else read_gang(each.namespace, each.metadata.annotations, {}) or each.uid

    @staticmethod
    def alone(each: ApiPod) -> bool:
        return not each.spec.scheduling_gates and read_gang(each.namespace, each.metadata.annotations, {}) is None

    @rule(name=names, gated=st.booleans(), gang=gangs, priority=st.integers(0, 2), label=st.integers(0, 1))
    def offered(self, name: str, gated: bool, gang: tuple[str, int] | None, priority: int, label: int) -> None:  # noqa: FBT001
        each = pod(
            name,
            priority=priority,
            gates=("gate",) if gated else (),
            gang=gang[0] if gang else None,
            size=gang[1] if gang else None,
            labels={"label": str(label)},
        )
        before = self.pods.get(each.uid)
        self.queue.offer(each, self.now)
        self.pods[each.uid] = each
        same_unit = before is not None and self.unit_of(before) == self.unit_of(each) is not None
        if not same_unit:
            self.flying.discard(each.uid)
            self.awaited.pop(each.uid, None)
            self.owed.discard(each.uid)
        if self.alone(each) and each != before:
            self.owed.add(each.uid)
            self.awaited.pop(each.uid, None)
        self.check_flying()

    @rule(name=names)
    def gone(self, name: str) -> None:
        uid = PodUid(f"uid-{name}")
        self.queue.withdraw(uid)
        self.forget(uid)

    def forget(self, uid: PodUid) -> None:
        self.pods.pop(uid, None)
        self.flying.discard(uid)
        self.awaited.pop(uid, None)
        self.owed.discard(uid)

    @rule(happened=cluster_events)
    def something_happened(self, happened: frozenset[ClusterEvent]) -> None:
        self.queue.happened(happened, self.now)
        for uid, awaited in list(self.awaited.items()):
            if awaited & happened:
                self.owed.add(uid)
                del self.awaited[uid]
        for uid in self.flying:
            if uid in self.pods:
                self.news.setdefault(uid, set()).update(happened)

    news: dict[PodUid, set[ClusterEvent]]

    @rule()
    def next(self) -> None:
        waiting = self.queue.next(self.now)
        if waiting is None:
            return
        for each in waiting.pods:
            assert each.uid not in self.flying, "handed out twice"
            assert self.pods[each.uid] == each
            assert not each.spec.scheduling_gates
            self.flying.add(each.uid)
            self.owed.discard(each.uid)
            assert each.uid not in self.awaited, "came up although nothing happened"
            self.news[each.uid] = set()
        if waiting.gang is not None:
            enough = len(waiting.pods) + self.running.get(waiting.gang, 0) >= waiting.gang.size
            assert enough == (waiting.lacking == 0)

    @rule(wanted=cluster_events, data=st.data())
    def failed(self, wanted: frozenset[ClusterEvent], data: st.DataObject) -> None:
        if not self.flying:
            return
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        self.flying.discard(uid)
        self.queue.failed(uid, wanted, self.now)
        if not self.alone(self.pods[uid]):
            return
        if uid in self.owed or self.news[uid] & wanted or ClusterEvent.TIME in wanted:
            self.owed.add(uid)
        else:
            self.awaited[uid] = wanted

    @rule(data=st.data())
    def bound(self, data: st.DataObject) -> None:
        if not self.flying:
            return
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        gang = read_gang("team", self.pods[uid].metadata.annotations, {})
        if gang is not None:
            self.running[gang] = self.running.get(gang, 0) + 1
        self.queue.withdraw(uid)
        self.forget(uid)

    @rule(seconds=st.sampled_from([0.5, 2.0, 15.0, 40.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    def check_flying(self) -> None:
        self.news = {uid: news for uid, news in getattr(self, "news", {}).items() if uid in self.flying}

    @invariant()
    def each_is_in_one_place(self) -> None:
        self.check_flying()
        sizes = self.queue.sizes()
        assert sum(sizes.values()) == len(self.pods)
        assert sizes["in flight"] == len(self.flying)
        assert all(uid in self.queue for uid in self.pods)

    def teardown(self) -> None:
        """Pods that are owed a try come up once all backoffs are over and all in-flight pods have returned."""
        for uid in list(self.flying):
            self.queue.failed(uid, frozenset((ClusterEvent.TIME,)), self.now)
            if self.alone(self.pods[uid]):
                self.owed.add(uid)
        came: set[PodUid] = set()
        while (waiting := self.queue.next(self.now + MOST_S)) is not None:
            came |= {each.uid for each in waiting.pods}
        assert self.owed <= came
        assert not came & self.awaited.keys()
        for group in vars(self.queue)["_groups"].values():
            if group.gang is not None and group.place is Place.GATHERING:
                assert len(group.members) + self.running.get(group.gang, 0) < group.gang.size


Anything.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=40, deadline=None)
TestAnything = pytest.mark.slow(Anything.TestCase)
