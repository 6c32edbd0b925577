"""However pods come, are suspended, resumed and end, those that are on a card never hold more than it has."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from partage_plugins.api import Allocation, PodUid
from partage_plugins.api.keys import SUSPEND
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.usage import usages
from partage_plugins.codecs.suspension import SuspensionReport
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.cycle import Bind, Unschedulable
from partage_scheduler.objects import ApiPod
from partage_scheduler.preemption import Preemption
from partage_scheduler.queue import Waiting
from partage_scheduler.resize.room import against_resuming
from support.extent import examples
from support.objects import given, pod
from unit.scheduler.preemption.stage import Preempted
from unit.scheduler.test_deciding_on_pods import NOW

FREED = frozenset((ClusterEvent.FREED,))
places = st.integers(0, 9)


class Suspensions(RuleBasedStateMachine):
    """An API server, a scheduler that may be another one at any time, and a node that tells the truth."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0
        self.waiting: dict[PodUid, ApiPod] = {}
        self.bound: dict[PodUid, tuple[ApiPod, Allocation]] = {}
        self.off: dict[PodUid, SuspensionReport] = {}
        """The node's reports; nothing of a pod with a report that is done is on its card."""
        self.start()

    def start(self) -> None:
        self.stage = Preempted(m=1)
        self.preemption = Preemption(self.stage.finder)
        for uid in self.bound:
            self.tell(uid)
        for each in self.waiting.values():
            self.stage.cluster.pod(each)
        self.report()

    def tell(self, uid: PodUid) -> None:
        each, allocation = self.bound[uid]
        notes = {**each.metadata.annotations, **given(allocation)}
        self.stage.cluster.pod(replace(each, metadata=replace(each.metadata, annotations=notes)))

    def report(self) -> None:
        self.stage.cluster.reported("m", dict(self.off))

    def write(self, uid: PodUid, allocation: Allocation) -> None:
        self.bound[uid] = self.bound[uid][0], allocation
        self.off.pop(uid, None)  # of another gen: its containers may be on the card from now on
        self.report()
        self.tell(uid)

    def suspended(self) -> list[PodUid]:
        return [uid for uid, (_, allocation) in self.bound.items() if allocation.suspended is not None]

    @rule(milli=st.sampled_from((200, 400, 700)), priority=st.integers(0, 3), is_allowed=st.booleans())
    def come(self, milli: int, priority: int, *, is_allowed: bool) -> None:
        self.count += 1
        notes = {SUSPEND: "allowed"} if is_allowed else {}
        made = pod(f"p{self.count}", milli=milli, priority=priority, annotations=notes)
        self.waiting[made.uid] = made
        self.decide(made)

    @precondition(lambda self: self.waiting)
    @rule(place=places)
    def decide_again(self, place: int) -> None:
        self.decide(list(self.waiting.values())[place % len(self.waiting)])

    def decide(self, waiting: ApiPod) -> None:
        (verdict,) = self.stage.cycle.decide(Waiting((waiting,)), NOW)
        if isinstance(verdict, Bind):
            del self.waiting[waiting.uid]
            spec = replace(waiting.spec, node_name="m")
            self.bound[waiting.uid] = replace(waiting, spec=spec), verdict.decision.allocation
            self.tell(waiting.uid)
            return
        found = self.preemption.consider(Unschedulable(waiting, "", FREED), NOW)
        for victim in found.victims:
            self.end(victim.uid)
        for each in self.preemption.suspensions():
            self.write(each.pod.uid, replace(each.booked, gen=each.booked.gen + 1))
        status = replace(waiting.status, nominated_node_name=found.node or "")
        self.waiting[waiting.uid] = replace(waiting, status=status)
        self.stage.cluster.pod(self.waiting[waiting.uid])

    def end(self, uid: PodUid) -> None:
        self.bound.pop(uid, None)
        self.waiting.pop(uid, None)
        self.off.pop(uid, None)
        self.stage.cluster.pod_gone(uid)
        self.report()

    @precondition(lambda self: self.bound)
    @rule(place=places)
    def end_one(self, place: int) -> None:
        self.end(list(self.bound)[place % len(self.bound)])

    @precondition(lambda self: self.waiting)
    @rule(place=places)
    def give_up(self, place: int) -> None:
        self.end(list(self.waiting)[place % len(self.waiting)])

    @precondition(lambda self: self.suspended())
    @rule(place=places, is_done=st.booleans())
    def node_reports(self, place: int, *, is_done: bool) -> None:
        uid = self.suspended()[place % len(self.suspended())]
        if uid not in self.off:
            why = "" if is_done else "it can't"
            self.off[uid] = SuspensionReport(gen=self.bound[uid][1].gen, is_done=is_done, why=why)
            self.report()

    @precondition(lambda self: self.suspended())
    @rule(place=places)
    def resume(self, place: int) -> None:
        uid = self.suspended()[place % len(self.suspended())]
        placed = self.stage.cluster.placed_pods.get(uid)
        assert placed is not None
        if against_resuming(self.stage.cycle, placed, NOW) is None:
            before = placed.allocation
            self.stage.cluster.rebook(uid, before, replace(before, suspended=None))
            self.write(uid, replace(before, suspended=None, gen=before.gen + 1))

    @rule()
    def another_scheduler(self) -> None:
        self.start()

    @invariant()
    def what_is_on_the_card_fits(self) -> None:
        on = [
            usage.share_milli
            for uid, (_, allocation) in self.bound.items()
            if not (uid in self.off and self.off[uid].is_done)
            for usage in usages(allocation)
        ]
        assert sum(on) <= WHOLE_MILLI


TestSuspensions = Suspensions.TestCase
TestSuspensions.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
