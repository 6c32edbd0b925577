"""Which nodes the extender leaves to kube-scheduler, their scores, and why others fail; requests change nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_plugins.api import NodeName, PodUid, SuspendedFor
from partage_plugins.api.keys import EXCLUSION, GANG, GANG_SIZE, GPU_MILLI
from partage_plugins.codecs.suspension import SuspensionReport
from partage_plugins.errors import Refused
from partage_scheduler.core import Core
from partage_scheduler.cycle import Unschedulable
from partage_scheduler.extender.filter import BEST, GROUP, NO_MORE, UNKNOWN, NodeFilter
from partage_scheduler.extender.filter import GANG as NO_GANGS
from partage_scheduler.extender.messages import KnownPod, PrioritizeArgs, Uid
from partage_scheduler.objects import ApiPod
from partage_scheduler.queue import Waiting
from support.extent import examples
from unit.scheduler.extender.stage import a_core, a_pod, add, asking, now

N1, N2, N3 = map(NodeName, ("n1", "n2", "n3"))
EVERYWHERE = ("n1", "n2", "n3")


@pytest.fixture
def core(tmp_path: Path) -> Core:
    return a_core(tmp_path, EVERYWHERE)


def place(core: Core, pod: ApiPod, node: NodeName) -> None:
    decision = NodeFilter(core.cycle).on(pod, node, now())
    assert not isinstance(decision, str), decision
    core.cluster.assume(pod, decision)


def prioritized(chooser: NodeFilter, pod: ApiPod, *names: NodeName) -> dict[NodeName, int]:
    args = PrioritizeArgs(pod=KnownPod(metadata=Uid(uid=pod.uid)), node_names=names)
    return {host.host: host.score for host in chooser.prioritize(args)}


def test_nodes_with_room_are_left_in_their_order(core: Core) -> None:
    for number in range(2):
        place(core, a_pod(f"full{number}", 1000), N2)
    result = NodeFilter(core.cycle).filter(asking(a_pod(), "n3", "n2", "n1"), now())
    assert result.node_names == ("n3", "n1")
    assert not result.error


def test_a_pod_that_keeps_others_off_more_than_it_asks_for_is_refused_with_and_without_an_extender(core: Core) -> None:
    sly = a_pod("sly", 1, annotations={EXCLUSION: "x"})
    with pytest.raises(Refused, match="ask for 1000 milli of each card"):
        NodeFilter(core.cycle).filter(asking(sly, *EVERYWHERE), now())
    (verdict,) = core.cycle.decide(Waiting((sly,)), now())
    assert isinstance(verdict, Unschedulable)
    assert "ask for 1000 milli of each card" in verdict.message
    place(core, a_pod("whole", 1000, annotations={EXCLUSION: "x"}), N1)


def test_among_equal_nodes_the_first_by_name_is_best(core: Core) -> None:
    chooser, pod = NodeFilter(core.cycle), a_pod()
    chooser.filter(asking(pod, "n3", "n1", "n2"), now())
    assert prioritized(chooser, pod, N3, N1, N2)[N1] == BEST
    assert prioritized(chooser, pod, N3, N2) == {N2: BEST}


@pytest.mark.slow
@given(st.lists(st.tuples(st.sampled_from(EVERYWHERE), st.sampled_from((125, 500, 1000))), max_size=9), st.data())
@settings(max_examples=examples(50))
def test_the_one_that_is_left_is_the_best_of_those_that_were_named(
    tmp_path_factory: pytest.TempPathFactory, held: list[tuple[str, int]], data: st.DataObject
) -> None:
    core = a_core(tmp_path_factory.mktemp("core"), EVERYWHERE)
    few, all_of_them = NodeFilter(core.cycle, most_nodes=1), NodeFilter(core.cycle)
    for number, (node, milli) in enumerate(held):
        decision = few.on(holder := a_pod(f"held{number}", milli), NodeName(node), now())
        if not isinstance(decision, str):
            core.cluster.assume(holder, decision)
    pod = a_pod(milli=data.draw(st.sampled_from((125, 500, 1000))))
    names = data.draw(st.lists(st.sampled_from((*EVERYWHERE, "unheard")), unique=True))
    left = all_of_them.filter(asking(pod, *names), now()).node_names
    best = [node for node, score in prioritized(all_of_them, pod, *left).items() if score == BEST]
    assert list(few.filter(asking(pod, *names), now()).node_names) == best


@pytest.mark.slow
def test_the_best_that_was_named_is_found_though_many_are_better(tmp_path: Path) -> None:
    names = tuple(f"n{number:03}" for number in range(130))
    core = a_core(tmp_path, names)
    few = NodeFilter(core.cycle, most_nodes=1)
    for number, name in enumerate(names[:120]):
        place(core, a_pod(f"held{number}", 500), NodeName(name))
    assert few.filter(asking(a_pod(), *reversed(names)), now()).node_names == ("n000",)
    assert few.filter(asking(a_pod(), *reversed(names[122:])), now()).node_names == ("n122",)
    assert few.filter(asking(a_pod(), *names[110:]), now()).node_names == ("n110",)


def test_what_the_pod_prefers_counts_as_in_standalone_mode(core: Core) -> None:
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n3"]}]
    term = {"weight": 100, "preference": {"matchFields": fields}}
    pod = a_pod(affinity={"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}})
    few = NodeFilter(core.cycle, most_nodes=1)
    assert few.filter(asking(pod, *EVERYWHERE), now()).node_names == ("n3",)
    assert few.filter(asking(a_pod(), "n3", "n2", "n1"), now()).node_names == ("n1",)


def test_where_it_fits_nowhere_each_node_has_its_reason(core: Core) -> None:
    add(core, "silent", beats=False)
    add(core, "bare", cards=0)
    add(core, "elsewhere", crishim=False)
    for number in range(2):
        place(core, a_pod(f"full{number}", 1000), N1)
    result = NodeFilter(core.cycle).filter(asking(a_pod(), "n1", "silent", "bare", "elsewhere", "unheard"), now())
    assert not result.node_names
    assert result.failed_nodes == {"n1": "Insufficient GPU share"}
    assert result.failed_and_unresolvable_nodes == {
        "silent": "node(s) had no heartbeat of the advertiser",
        "bare": "node(s) had no cards",
        "elsewhere": "node(s) had no crishim in force",
        "unheard": str(UNKNOWN),
    }


def test_it_is_known_whether_there_is_room_anywhere(core: Core, tmp_path: Path) -> None:
    chooser, pod = NodeFilter(core.cycle), a_pod("whole", 1000)
    assert chooser.fits(pod, now())
    for number, node in enumerate((N1, N1, N2, N2, N3, N3)):
        place(core, a_pod(f"small{number}", 100), node)
        assert chooser.fits(pod, now())
    for number, node in enumerate((N1, N2, N3)):
        assert chooser.fits(pod, now())
        place(core, a_pod(f"whole{number}", 1000), node)
    assert not chooser.fits(pod, now())
    assert chooser.fits(a_pod("half", 500), now())
    assert not chooser.fits(a_pod("gang", annotations={GANG: "g", GANG_SIZE: "2"}), now())
    assert not NodeFilter(a_core(tmp_path, ()).cycle).fits(pod, now())


def test_the_room_of_a_suspended_pod_is_used_last_and_by_higher_pods_alone(tmp_path: Path) -> None:
    core = a_core(tmp_path, ("n1", "n2"))
    for number, node in enumerate((N1, N1, N2)):
        place(core, a_pod(f"full{number}", 1000), node)
    held = core.cluster.placed_pods.get(PodUid("uid-full0"))
    assert held is not None
    suspended = replace(held.allocation, gen=2, suspended=SuspendedFor(by=PodUid("uid-new"), at=1))
    core.cluster.rebook(held.pod.uid, held.allocation, suspended)
    core.cluster.reported("n1", {held.pod.uid: SuspensionReport(gen=2, is_done=True)})
    chooser, high, low = NodeFilter(core.cycle), a_pod("high", 1000, priority=5), a_pod("low", 1000)
    assert chooser.filter(asking(high, "n1", "n2"), now()).node_names == ("n2",)
    place(core, a_pod("last", 1000), N2)
    assert chooser.filter(asking(high, "n1", "n2"), now()).node_names == ("n1",)
    assert chooser.fits(high, now())
    assert not isinstance(chooser.on(high, N1, now()), str)
    assert not chooser.filter(asking(low, "n1", "n2"), now()).node_names
    assert not chooser.fits(low, now())
    assert isinstance(chooser.on(low, N1, now()), str)


def test_cpu_and_memory_are_kube_schedulers(core: Core) -> None:
    container = {"name": "main", "resources": {"limits": {GPU_MILLI: "500", "cpu": "1000"}}}
    pod = a_pod(containers=[container])
    assert NodeFilter(core.cycle).filter(asking(pod, "n1"), now()).node_names == ("n1",)


@pytest.mark.parametrize(
    ("pod", "why"),
    [
        (a_pod(annotations={GANG: "g", GANG_SIZE: "2"}), NO_GANGS),
        (a_pod(schedulingGroup={"podGroupName": "g"}), GROUP),
        (a_pod(annotations={"partage.dev/nonsense": "1"}), "partage.dev/nonsense"),
    ],
)
def test_what_can_never_be_says_so(core: Core, pod: ApiPod, why: str) -> None:
    chooser = NodeFilter(core.cycle)
    found = chooser.filter(asking(pod, "n1", "n2"), now()).failed_and_unresolvable_nodes
    assert found.keys() == {"n1", "n2"}
    assert all(why in each for each in found.values())
    assert why in str(chooser.on(pod, N1, now()))


def test_there_is_no_opinion_on_a_pod_that_nobody_asked_about(core: Core) -> None:
    assert prioritized(NodeFilter(core.cycle), a_pod(), N1, N2) == {}


def test_at_the_end_the_node_as_it_is_counts(core: Core) -> None:
    chooser, pod = NodeFilter(core.cycle), a_pod("late", 1000)
    assert chooser.filter(asking(pod, "n1"), now()).node_names == ("n1",)
    for number in range(2):
        place(core, a_pod(f"quick{number}", 1000), N1)
    assert chooser.on(pod, N1, now()) == f"{NO_MORE}: Insufficient GPU share"
    assert chooser.on(pod, NodeName("gone"), now()) == f"{NO_MORE}: {UNKNOWN}"
