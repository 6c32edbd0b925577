"""After any history, a scheduler that starts from the API server's state has the same books and decides the same."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from partage_plugins.api import PodUid, Ready
from partage_plugins.api.keys import GPU_MILLI
from partage_scheduler.decision import Decision
from partage_scheduler.objects import ApiNode, ApiPod
from support.extent import examples
from support.objects import given, pod
from unit.scheduler.cluster.cards import Cards, carded, granted

NODES, PODS = ("l", "m"), tuple(f"p{number}" for number in range(3))
HEALTHS = ("ok", "ok", "lost", "degraded: why")
nodes, pods = st.sampled_from(NODES), st.sampled_from(PODS)
healths = st.lists(st.sampled_from(HEALTHS), max_size=3)
ASKING = [pod("new", milli=milli, cpu="1") for milli in (100, 500, 1000, 2000)] + [pod("new", cpu="3")]


class History(RuleBasedStateMachine):
    """The API server's state, a watch that reports it late and twice, and a scheduler's actions in between."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Cards()
        self.cluster = self.stage.cluster
        self.now = 0.0
        self.version = 0
        self.life = 0
        self.nodes: dict[str, ApiNode] = {}
        self.pods: dict[str, ApiPod] = {}
        self.beats: dict[str, float] = {}
        self.told: list[ApiPod | ApiNode] = []
        self.assumed: dict[str, Decision] = {}

    def next_version(self) -> int:
        self.version += 1
        return self.version

    def tell(self, thing: ApiPod | ApiNode) -> None:
        self.told.append(thing)
        if isinstance(thing, ApiPod):
            self.stage.event_handlers.changed(thing)
        else:
            self.cluster.node(thing)

    def write(self, name: str, **fields: object) -> ApiPod:
        """Create or update the pod in the API server."""
        before = self.pods.get(name)
        if before is None:
            self.life += 1
        uid = before.uid if before else PodUid(f"uid-{name}-{self.life}")
        kept: dict[str, object] = {}
        if before is not None:
            limits = before.spec.containers[0].resources.limits
            kept = {"node": before.node, "annotations": dict(before.metadata.annotations)}
            kept["milli"] = int(limits.get(GPU_MILLI, "0"))
        self.pods[name] = pod(name, uid=uid, version=self.next_version(), cpu="1", **{**kept, **fields})  # type: ignore[arg-type]
        return self.pods[name]

    @initialize()
    def all_is_well(self) -> None:
        for name in NODES:
            self.a_node(name, ["ok", "ok"], crishim=True, cpu="8", anew=False)
            self.a_beat(name)
        for name in PODS:
            self.a_pod(name, 300)

    @rule(name=nodes, cards=healths, crishim=st.booleans(), cpu=st.sampled_from(["2", "8"]), anew=st.booleans())
    def a_node(self, name: str, cards: list[str], crishim: bool, cpu: str, anew: bool) -> None:  # noqa: FBT001
        if anew or name not in self.nodes:
            self.life += 1
        uid = self.nodes[name].metadata.uid if name in self.nodes and not anew else f"uid-{name}-{self.life}"
        ready = Ready(crishim=crishim, broker=True)
        self.nodes[name] = carded(name, *cards, ready=ready, cpu=cpu, uid=uid, version=self.next_version())
        self.tell(self.nodes[name])

    @rule(name=nodes)
    def a_node_goes(self, name: str) -> None:
        gone = self.nodes.pop(name, None)
        if gone is not None:
            self.cluster.node_gone(name, uid=gone.metadata.uid)

    @rule(name=nodes)
    def a_beat(self, name: str) -> None:
        self.beats[name] = self.now
        self.cluster.heartbeat(name, self.now, self.now)

    @rule(seconds=st.sampled_from([1.0, 30.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(name=pods, milli=st.sampled_from([0, 300, 700]))
    def a_pod(self, name: str, milli: int) -> None:
        if name not in self.pods:
            self.tell(self.write(name, milli=milli))

    @rule(name=pods)
    def decided(self, name: str) -> None:
        self.a_pod(name, 700)
        waiting = self.pods.get(name)
        if waiting is None or waiting.node or waiting.is_terminal or name in self.assumed:
            return
        decision = self.stage.decide(waiting, self.now)
        if isinstance(decision, Decision):
            self.cluster.assume(waiting, decision)
            self.assumed[name] = decision

    @rule(name=pods, steps=st.permutations(["arrives", "answered", "heard"]), failed=st.booleans())
    def binding(self, name: str, steps: list[str], failed: bool) -> None:  # noqa: FBT001
        """The binding arrives or not, is confirmed or taken for failed, and the watch reports it before or after."""
        if name not in self.assumed:
            self.decided(name)
        decision = self.assumed.pop(name, None)
        if decision is None:
            return
        uid = decision.request.pod.uid
        for step in steps:
            there = self.pods.get(name)
            if step == "arrives" and there and there.uid == uid and not there.node and not there.is_terminal:
                self.write(name, node=decision.node, annotations=given(decision.allocation))
            if step == "heard" and there and there.node:
                self.tell(there)
            if step == "answered" and there and there.node and not failed:
                self.cluster.confirmed(uid)
            elif step == "answered":
                self.cluster.undo(uid)

    @rule(name=pods, on=nodes, milli=st.sampled_from([0, 200, 900]), signature=st.sampled_from(["good", "forged"]))
    def bound_by_others(self, name: str, on: str, milli: int, signature: str) -> None:
        there = self.pods.get(name)
        if there is not None and (there.node or there.is_terminal):
            return
        uid = there.uid if there else PodUid(f"uid-{name}-{self.life + 1}")
        noted = given(granted(uid, on, 0, milli), signature) if milli else {}
        self.tell(self.write(name, node=on, annotations=noted))

    @rule(name=pods, how=st.sampled_from(["labels", "going", "end"]), heard=st.booleans())
    def changes(self, name: str, how: str, heard: bool) -> None:  # noqa: FBT001
        there = self.pods.get(name)
        if there is None or there.is_terminal:
            return
        fields: dict[str, dict[str, object]] = {
            "labels": {"labels": {"at": str(self.version)}},
            "going": {"going": True},
            "end": {"phase": "Failed"},
        }
        changed = self.write(name, **fields[how])
        if heard:
            self.tell(changed)

    @rule(name=pods)
    def deleted(self, name: str) -> None:
        there = self.pods.pop(name, None)
        if there is not None:
            self.stage.event_handlers.gone(there.uid)

    @rule(data=st.data())
    def told_again(self, data: st.DataObject) -> None:
        if self.told:
            self.tell(data.draw(st.sampled_from(self.told)))

    @rule()
    def listed_anew(self) -> None:
        self.cluster.relisted_nodes(self.nodes.values())
        self.stage.event_handlers.listed(self.pods.values())

    def teardown(self) -> None:
        for decision in self.assumed.values():
            self.cluster.undo(decision.request.pod.uid)
        self.listed_anew()
        for name, beat in self.beats.items():
            self.cluster.heartbeat(name, beat, self.now)
        anew = Cards()
        for pods_first in (True, False):
            if pods_first:
                anew.event_handlers.listed(reversed(self.pods.values()))
            anew.cluster.relisted_nodes(reversed(self.nodes.values()))
        for name, beat in self.beats.items():
            anew.cluster.heartbeat(name, beat, self.now)
        assert self.stage.books(self.now) == anew.books(self.now)
        for each in ASKING:
            assert self.stage.decide(each, self.now) == anew.decide(each, self.now)


History.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestHistory = pytest.mark.slow(History.TestCase)
