"""No card is allocated twice, for any events on claims, pods, nodes and schedulers, reported in any order."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec.structs import replace

from partage_plugins.api import PodUid
from partage_scheduler.cycle import Bind
from partage_scheduler.objects import ApiResourceClaim
from partage_scheduler.queue import Waiting
from support.claim_objects import request
from support.extent import examples
from unit.scheduler.claims.made import NOW, Stage, allocated, claim, claimable, using

NODES: tuple[str, ...] = ("m", "n")
NUMBERS = st.integers(0, 5)
SHARES = st.sampled_from(("100", "300", "500", "1000"))


class Machine(RuleBasedStateMachine):
    """`truth` is the API server's state; the scheduler learns of it late, and restarts now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.truth: dict[str, ApiResourceClaim] = {}
        self.flying: dict[str, Bind] = {}
        self.known = set[str](NODES)
        self.versions = 1
        self.begin_anew()

    @rule()
    def begin_anew(self) -> None:
        """Start another scheduler, which gets claims before nodes; bindings in flight are no longer written."""
        self.flying = {}
        self.stage = Stage()
        for each in self.truth.values():
            self.stage.claims.put(each)
        for name in sorted(self.known):
            self.node_comes(name)

    @rule(number=NUMBERS, share=SHARES, count=st.integers(1, 2))
    def make(self, number: int, share: str, count: int) -> None:
        name = f"c{number}"
        if name not in self.truth:
            self.told(claim(name, request(share=share, memory="1Gi", count=count)))

    @rule(number=NUMBERS)
    def decide(self, number: int) -> None:
        pod = using(f"p{number}", f"c{number}")
        if pod.uid in self.flying or pod.uid in {uid for each in self.truth.values() for uid in each.consumers}:
            return
        (verdict,) = self.stage.cycle.decide(Waiting((pod,)), NOW)
        if isinstance(verdict, Bind):
            self.flying[pod.uid] = verdict

    @precondition(lambda self: self.flying)
    @rule(data=st.data(), is_written=st.booleans(), is_bound=st.booleans())
    def land(self, data: st.DataObject, is_written: bool, is_bound: bool) -> None:  # noqa: FBT001
        uid = data.draw(st.sampled_from(sorted(self.flying)))
        bind = self.flying.pop(uid)
        for grant in bind.claims:
            stands = self.truth.get(grant.name)
            if is_written and grant.given and stands is not None and not stands.results:
                self.told(allocated(stands, grant, bind.pod))
        if is_written and is_bound:
            self.stage.cluster.confirmed(bind.pod.uid)
            self.stage.cluster.pod(replace(bind.pod, spec=replace(bind.pod.spec, node_name=bind.decision.node)))
        else:
            self.stage.cluster.undo(PodUid(uid))

    @rule(number=NUMBERS)
    def end(self, number: int) -> None:
        """The pod is deleted, then its claim is released or deleted."""
        name, uid = f"c{number}", using(f"p{number}").uid
        stands = self.truth.get(name)
        if stands is None or uid in self.flying:
            return
        self.stage.cluster.pod_gone(uid)
        del self.truth[name]
        self.stage.claims.remove(stands)

    @rule(name=st.sampled_from(NODES))
    def node_comes(self, name: str) -> None:
        self.known.add(name)
        self.versions += 1
        self.stage.cluster.node(claimable(name, 1, version=self.versions))
        self.stage.cluster.heartbeat(name, NOW, NOW)

    @precondition(lambda self: not self.flying)
    @rule(name=st.sampled_from(NODES))
    def node_goes(self, name: str) -> None:
        self.known.discard(name)
        self.stage.cluster.node_gone(name)

    def told(self, stands: ApiResourceClaim) -> None:
        self.truth[stands.name] = stands
        self.stage.claims.put(stands)

    @invariant()
    def no_card_has_more_than_there_is(self) -> None:
        given = Counter[tuple[str, str]]()
        for each in self.truth.values():
            for result in each.results:
                given[result.pool, result.device] += int(result.consumed_capacity["share"])
        assert all(milli <= 1000 for milli in given.values()), given


Machine.TestCase.settings = settings(max_examples=examples(25), stateful_step_count=30, deadline=None)
TestNeverMoreThanACard = pytest.mark.slow(Machine.TestCase)
