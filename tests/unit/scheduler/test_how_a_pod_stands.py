"""One pod in any state, as a person asks about it."""

from __future__ import annotations

from msgspec.structs import replace

from partage_plugins.vocabulary import CardId, NodeName, keys
from partage_scheduler.explanation import Displaced, PodReport, stand
from partage_scheduler.objects import ApiPod
from support.objects import pod
from unit.scheduler.preemption.stage import Preempted, running
from unit.scheduler.test_deciding_on_pods import NOW


def stands(stage: Preempted, of: ApiPod, *, lacking: int = 0) -> PodReport:
    return stand(stage.finder, of, NOW, lacking=lambda _pod: lacking, flagged=stage.cluster.verified.flagged)


def test_a_pod_on_a_node_is_shown_with_what_it_was_given() -> None:
    one = running("a", "m", 0, 500)
    found = stands(Preempted(one, m=1), one)
    assert (found.state, found.node, found.message) == ("on a node", "m", "it is on node m")
    assert [(each.container, each.card, each.share_milli) for each in found.given] == [("main", CardId("m-0"), 500)]


def test_an_allocation_that_is_not_believed_is_said_to_be() -> None:
    forged = pod("a", node="m", annotations=dict.fromkeys((keys.ALLOCATION, keys.SIGNATURE), "forged"))
    found = stands(Preempted(forged, m=1), forged)
    assert not found.given
    assert "not signed by us" in found.message


def test_a_pod_that_took_its_allocation_off_is_shown_with_what_counts() -> None:
    one = running("a", "m", 0, 500)
    stage = Preempted(one, m=2)
    bare = replace(one, metadata=replace(one.metadata, annotations={}))
    stage.cluster.pod(bare)
    found = stands(stage, bare)
    assert found.message.startswith("its allocation was taken off: what was verified before counts")
    assert [each.card for each in found.given] == [CardId("m-0")]
    never = pod("b", node="m", milli=300)
    found = stands(Preempted(never, m=2), never)
    assert "its request counts on every card of the node" in found.message
    assert [(each.card, each.share_milli) for each in found.given] == [(CardId("m-0"), 300), (CardId("m-1"), 300)]


def test_a_pod_that_would_fit_says_where() -> None:
    found = stands(Preempted(m=1), pod("new", milli=100))
    assert (found.state, found.message) == ("fits", "it fits, and would go to m now")


def test_who_would_leave_for_it_is_named() -> None:
    found = stands(Preempted(running("low", "m", 0, 800), m=1), pod("new", milli=500, priority=9))
    assert found.state == "waits"
    assert found.displaces == Displaced(node=NodeName("m"), pods=("team/low",), violations=0)


def test_what_holds_a_pod_back_is_said_before_anything_else() -> None:
    gated = pod("new", milli=5000, gates=("later",))
    assert stands(Preempted(m=1), gated).message.endswith("scheduling gates: later")
    ganged = pod("new", milli=5000, gang="g", size=3)
    assert stands(Preempted(m=1), ganged, lacking=2).message == (
        "gang g is bound all or none: 2 of its 3 pods are not there yet."
    )
    assert stands(Preempted(m=1), pod("new", phase="Succeeded")).state == "ended"
    assert stands(Preempted(m=1), pod("new", going=True)).state == "being deleted"


def test_a_pod_of_a_gang_displaces_nobody() -> None:
    ganged = pod("new", milli=500, priority=9, gang="g", size=2)
    assert stands(Preempted(running("low", "m", 0, 800), m=1), ganged).displaces is None


def test_what_is_written_wrongly_is_said_and_is_no_failure() -> None:
    found = stands(Preempted(m=1), pod("new", milli=1500))
    assert found.state == "waits"
    assert found.message.startswith("it is written wrongly: ")
    two = pod("new", milli=500, annotations={"gpu-fraction": "0.5"})
    assert stands(Preempted(m=1), two).message.endswith("kai-dialect and native-dialect; use one of them")
