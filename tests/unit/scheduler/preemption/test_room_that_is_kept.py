"""Room for a preempting pod is kept from others while its victims leave, and no victim leaves in vain."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from partage_plugins.api import PodUid
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.objects import ApiBudget, ApiPod
from partage_scheduler.preemption import NoVictims
from support.extent import examples
from support.objects import pod
from unit.scheduler.cluster.cards import carded
from unit.scheduler.preemption.stage import Preempted, budget, running
from unit.scheduler.test_deciding_on_pods import NOW

UID = PodUid("uid-new")


def waiting() -> tuple[Preempted, PodUid]:
    """One card, of which `low` has 800 milli; `new` waits for `low` to leave."""
    stage = Preempted(running("low", "m", 0, 800), m=1)
    new = pod("new", milli=500, priority=5)
    stage.keep(new, stage.victims(new))
    return stage, PodUid("uid-low")


def test_before_and_after_the_victim_has_left_no_lower_and_no_equal_pod_gets_it() -> None:
    stage, low = waiting()
    for _ in range(2):
        assert stage.decides(pod("lower", milli=600, priority=4)) is None
        assert stage.decides(pod("equal", milli=600, priority=5)) is None
        stage.cluster.pod_gone(low)
    assert stage.decides(pod("new", milli=500, priority=5)) == "m"
    assert stage.cluster.kept.node_of(UID) is None


def test_a_higher_pod_takes_it_and_the_one_that_waited_is_told() -> None:
    stage, low = waiting()
    stage.cluster.pod_gone(low)
    assert stage.decides(pod("higher", milli=600, priority=6)) == "m"
    assert [each.uid for each in stage.cluster.pointless()] == [UID]
    assert stage.cluster.kept.node_of(UID) is None
    assert stage.decides(pod("new", milli=500, priority=5)) is None


def test_a_pod_that_was_bound_elsewhere_meanwhile_keeps_nothing() -> None:
    stage, low = waiting()
    stage.cluster.node(carded("n", "ok"))
    stage.cluster.pod_gone(low)
    assert ClusterEvent.FREED in stage.cluster.pod(pod("new", node="n", milli=500, priority=5))
    assert stage.decides(pod("lower", milli=1000)) == "m"


def test_a_node_that_goes_takes_it_along() -> None:
    stage, _ = waiting()
    stage.cluster.node_gone("m")
    assert [each.uid for each in stage.cluster.pointless()] == [UID]
    stage.cluster.node(carded("m", "ok", uid="another"))
    assert stage.cluster.kept.node_of(UID) is None
    assert stage.decides(pod("lower", milli=200)) == "m"


def test_another_inventory_changes_nothing_of_it() -> None:
    stage, low = waiting()
    stage.cluster.node(carded("m", "ok", "lost"))
    stage.cluster.pod_gone(low)
    assert stage.decides(pod("lower", milli=600, priority=4)) is None
    assert stage.decides(pod("new", milli=500, priority=5)) == "m"


def test_it_counts_once_however_the_pod_is_nominated() -> None:
    stage = Preempted(running("low", "m", cpu="6"), m=0)
    new = pod("new", cpu="4", priority=5)
    stage.keep(new, stage.victims(new))
    stage.cluster.pod(pod("new", cpu="4", priority=5, nominated="m", version=7))
    stage.cluster.pod_gone(PodUid("uid-low"))
    assert stage.decides(pod("lower", cpu="4", priority=0)) == "m"


def test_nobody_is_placed_near_a_pod_that_is_not_there_yet() -> None:
    stage = Preempted(running("low", "m", 0, 800), m=1)
    new = pod("new", milli=500, priority=5, labels={"app": "db"})
    stage.keep(new, stage.victims(new))
    near = {"topologyKey": "name", "labelSelector": {"matchLabels": {"app": "db"}}}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [near]}}
    assert stage.decides(pod("friend", affinity=affinity)) is None


CARDS, NODES, PRIORITY = 3, ("m", "n"), 5


@dataclass(frozen=True)
class On:
    """The properties of a pod that matter here."""

    node: str
    card: int
    milli: int
    cpu: int
    priority: int
    minute: int
    label: str


ON = st.builds(
    On,
    node=st.sampled_from(NODES),
    card=st.integers(0, CARDS - 1),
    milli=st.sampled_from((0, 100, 300, 500, 700, 1000)),
    cpu=st.integers(0, 3),
    priority=st.integers(0, PRIORITY + 1),
    minute=st.integers(0, 59),
    label=st.sampled_from(("a", "b", "c")),
)
NEW = st.builds(
    lambda milli, cpu: pod("new", milli=milli, cpu=str(cpu), priority=PRIORITY),
    st.sampled_from((0, 200, 500, 900, 1000, 2000, 3000)),
    st.integers(0, 8),
)
BUDGETS = st.dictionaries(st.sampled_from(("a", "b", "c")), st.integers(0, 1), max_size=2)


def pods_of(wanted: list[On]) -> list[ApiPod]:
    """Only as many pods as a card has room for: other schedulers' allocations do not exceed it either."""
    left: dict[tuple[str, int], int] = {}
    found: list[ApiPod] = []
    for number, on in enumerate(wanted):
        key = on.node, on.card
        if left.setdefault(key, 1000) >= on.milli:
            left[key] -= on.milli
            found.append(
                running(
                    f"p{number}",
                    on.node,
                    on.card,
                    on.milli,
                    priority=on.priority,
                    minute=on.minute,
                    cpu=str(on.cpu),
                    labels={"app": on.label},
                )
            )
    return found


def budgets_of(allowed: dict[str, int]) -> tuple[ApiBudget, ...]:
    return tuple(budget(name, {"app": name}, number) for name, number in allowed.items())


@pytest.mark.slow
@settings(max_examples=examples(40), deadline=None)
@given(on=st.lists(ON, max_size=12), new=NEW, allowed=BUDGETS)
def test_the_pod_fits_afterwards_and_nobody_left_in_vain(on: list[On], new: ApiPod, allowed: dict[str, int]) -> None:
    pods = pods_of(on)

    def stage(without: set[str]) -> Preempted:
        there = [each for each in pods if each.name not in without]
        return Preempted(*there, budgets=budgets_of(allowed), m=CARDS, n=CARDS)

    assume(stage(set()).decides(new) is None)
    whole = stage(set())
    found = whole.finder.victims(new, NOW)
    if isinstance(found, NoVictims):
        lower = {each.name for each in pods if each.priority < PRIORITY}
        for node in NODES:  # it would not fit there even with all of them gone
            gone = {each.name for each in pods if each.name in lower and each.node == node}
            assert stage(gone).decides(new) != node
        return
    names = {each.name for each in found.pods}
    assert all(each.priority < PRIORITY and each.node == found.node for each in found.pods)
    assert stage(names).decides(new) == found.node
    for name in names:
        assert stage(names - {name}).decides(new) is None, f"{name} left in vain"
    whole.keep(new, found)
    whole.send_away(found)
    again = pod("again", milli=new_milli(new), cpu=new_cpu(new), priority=PRIORITY - 1)
    went = whole.decides(again)
    assert whole.decides(new) == found.node, f"what was kept went to a lower pod on {went}"


def new_milli(new: ApiPod) -> int:
    return int(new.spec.containers[0].resources.limits.get("partage.dev/gpu-milli", "0"))


def new_cpu(new: ApiPod) -> str:
    return new.spec.containers[0].resources.requests.get("cpu", "0")
