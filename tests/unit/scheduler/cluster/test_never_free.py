"""A card in use is never free, and its tags stay, for any changes of annotations reported in any order."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from partage_plugins.api import GPU, Allocation, GpuGrant, PodUid, keys
from partage_scheduler.decision import Decision
from partage_scheduler.objects import ApiNode, ApiPod
from support.extent import examples
from support.objects import given, pod
from unit.scheduler.cluster.cards import Cards, carded, granted

NODES, PODS = ("l", "m"), ("p0", "p1", "p2")
nodes, pods = st.sampled_from(NODES), st.sampled_from(PODS)
TAMPERED = ("off", "signature off", "broken", "forged", "another's", "older", "back")


def grant_of(allocation: Allocation) -> GpuGrant:
    ((grant,),) = allocation.of(GPU).values()
    return grant


def lowered(allocation: Allocation, share_milli: int) -> Allocation:
    """The pod's next allocation: a smaller share of the same card."""
    grant = replace(grant_of(allocation), share_milli=min(share_milli, grant_of(allocation).share_milli))
    containers = {name: {GPU.name: (grant,)} for name in allocation.containers}
    return replace(allocation, gen=allocation.gen + 1, containers=containers)


class Tampering(RuleBasedStateMachine):
    """An API server, users who write anything on their pods, and schedulers that come and go."""

    def __init__(self) -> None:
        super().__init__()
        self.stage = Cards()
        self.nodes: dict[str, ApiNode] = {}
        self.pods: dict[str, ApiPod] = {}
        self.given: dict[PodUid, list[Allocation]] = {}
        """All allocations ever signed for a pod that still exists."""
        self.told: list[ApiPod] = []
        self.count = 0

    def version(self) -> int:
        self.count += 1
        return self.count

    def write(self, name: str, annotations: Mapping[str, str], *, heard: bool) -> None:
        before = self.pods[name]
        meta = replace(before.metadata, annotations=dict(annotations), resource_version=str(self.version()))
        self.pods[name] = replace(before, metadata=meta)
        if heard:
            self.tell(self.pods[name])

    def tell(self, thing: ApiPod) -> None:
        self.told.append(thing)
        self.stage.event_handlers.changed(thing)

    @initialize()
    def all_is_well(self) -> None:
        for name in NODES:
            self.a_node(name, 2, anew=True)
        for name, milli, tag in zip(PODS, (700, 300, 700), ("", "x", "y"), strict=True):
            self.placed(name, milli, tag, is_heard=True)

    @rule(name=nodes, cards=st.integers(1, 3), anew=st.booleans())
    def a_node(self, name: str, cards: int, anew: bool) -> None:  # noqa: FBT001
        uid = f"uid-{name}-{self.version()}" if anew or name not in self.nodes else self.nodes[name].metadata.uid
        self.nodes[name] = carded(name, *["ok"] * cards, uid=uid, version=self.version())
        self.stage.cluster.node(self.nodes[name])
        self.stage.cluster.heartbeat(name, 0.0, 0.0)

    @rule(name=nodes)
    def a_node_goes(self, name: str) -> None:
        if (gone := self.nodes.pop(name, None)) is not None:
            self.stage.cluster.node_gone(name, uid=gone.metadata.uid)

    @rule(name=pods, milli=st.sampled_from([300, 700]), tag=st.sampled_from(["", "x", "y"]), is_heard=st.booleans())
    def placed(self, name: str, milli: int, tag: str, is_heard: bool) -> None:  # noqa: FBT001
        if name in self.pods:
            return
        affinity_terms = {keys.EXCLUSION: tag} if tag else {}
        new = pod(
            name, uid=f"uid-{name}-{self.version()}", version=self.version(), milli=milli, annotations=affinity_terms
        )
        decision = self.stage.decide(new)
        if not isinstance(decision, Decision):
            return
        self.stage.cluster.assume(new, decision)
        self.given[new.uid] = [decision.allocation]
        self.pods[name] = replace(new, spec=replace(new.spec, node_name=decision.node))
        self.write(name, {**affinity_terms, **given(decision.allocation)}, heard=is_heard)
        self.stage.cluster.confirmed(new.uid)

    @rule(name=pods, milli=st.sampled_from([100, 600]), is_heard=st.booleans())
    def changed_by_us(self, name: str, milli: int, is_heard: bool) -> None:  # noqa: FBT001
        if name in self.pods:
            signed = self.given[self.pods[name].uid]
            signed.append(lowered(signed[-1], milli))
            self.write(name, {**self.pods[name].metadata.annotations, **given(signed[-1])}, heard=is_heard)

    @rule(name=pods, how=st.sampled_from(TAMPERED), is_heard=st.booleans())
    def tampered_with(self, name: str, how: str, is_heard: bool) -> None:  # noqa: FBT001
        there = self.pods.get(name)
        if there is None:
            return
        signed = self.given[there.uid]
        affinity_terms = {key: text for key, text in there.metadata.annotations.items() if not key.startswith("alloc.")}
        whole = {
            "off": {},
            "signature off": {keys.ALLOCATION: given(signed[-1])[keys.ALLOCATION]},
            "broken": {keys.ALLOCATION: "{", keys.SIGNATURE: "good"},
            "forged": given(granted(there.uid, there.node, 0, 1), "forged"),
            "another's": given(granted("another", there.node, 0, 1)),
            "older": given(signed[0]),
            "back": given(signed[-1]),
        }
        self.write(name, {**affinity_terms, **whole[how]}, heard=is_heard)

    @rule(data=st.data())
    def told_late_or_twice(self, data: st.DataObject) -> None:
        if self.told:
            self.tell(data.draw(st.sampled_from(self.told)))

    @rule(name=pods)
    def gone(self, name: str) -> None:
        if (there := self.pods.pop(name, None)) is not None:
            del self.given[there.uid]
            self.stage.event_handlers.gone(there.uid)

    @rule()
    def listed_anew(self) -> None:
        self.stage.cluster.relisted_nodes(self.nodes.values())
        self.stage.event_handlers.listed(self.pods.values())

    @rule(is_pods_first=st.booleans())
    def another_scheduler(self, is_pods_first: bool) -> None:  # noqa: FBT001
        self.stage, self.told = Cards(), []
        if is_pods_first:
            self.stage.event_handlers.listed(self.pods.values())
        self.listed_anew()
        for name in self.nodes:
            self.stage.cluster.heartbeat(name, 0.0, 0.0)

    @invariant()
    def no_card_is_freer_than_it_is(self) -> None:
        for name, node in self.nodes.items():
            used = self.used(name)
            for place, (left, _) in enumerate(self.stage.left(node.name)):
                assert left <= 1000 - used.get(f"{name}-{place}", 0)

    @invariant()
    def no_tag_is_contradicted(self) -> None:
        for tag in (None, "x", "y"):
            decision = self.stage.decide(pod("new", milli=1, annotations={keys.EXCLUSION: tag} if tag else {}))
            if isinstance(decision, Decision):
                card = grant_of(decision.allocation).card
                counted = f"team.{tag}" if tag else None
                assert {counted} >= {grant.tags.exclusion for grant in self.grants() if grant.card == card}

    def grants(self) -> list[GpuGrant]:
        return [grant_of(signed[-1]) for signed in self.given.values()]

    def used(self, node: str) -> dict[str, int]:
        found: dict[str, int] = {}
        for grant in self.grants():
            if grant.card.startswith(node):
                found[grant.card] = found.get(grant.card, 0) + grant.share_milli
        return found


Tampering.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=25, deadline=None)
TestTampering = pytest.mark.slow(Tampering.TestCase)
