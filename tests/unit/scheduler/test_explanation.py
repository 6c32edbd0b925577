"""The explanation of one pod in any state: nodes, cards, and what would help."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_plugins.api import CardId, NodeName, keys
from partage_plugins.errors import DecodeError
from partage_scheduler.explanation import Displaced, Explained, PodReport, explain, stand
from partage_scheduler.objects import ApiPod
from support.objects import given, pod
from unit.scheduler.cluster.cards import carded, granted
from unit.scheduler.preemption.stage import Preempted, running
from unit.scheduler.test_deciding_on_pods import NOW, Stage


def explained(stage: Stage, waiting: ApiPod) -> Explained:
    before = stage.decider.slots.end
    found = explain(stage.cycle, waiting, NOW)
    assert stage.decider.slots.end == before
    return found


def in_use() -> Stage:
    """Two nodes; 700 and 900 milli of their cards are in use, and 7 CPUs of the first."""
    stage = Stage(m=1, n=1)
    stage.cluster.pod(pod("a", node="m", cpu="7", annotations=given(granted("uid-a", "m", 0, 700))))
    stage.cluster.pod(pod("b", node="n", annotations=given(granted("uid-b", "n", 0, 900))))
    return stage


def changes(found: Explained) -> dict[str, str]:
    return {each.change: each.node for each in found.helps}


def test_a_pod_that_fits_is_told_where_it_would_go() -> None:
    found = explained(in_use(), pod("new", milli=200))
    assert (found.message, found.goes_to) == ("", "m")
    assert [(each.node, each.reasons) for each in found.nodes] == [("m", ()), ("n", ("Insufficient GPU share",))]
    assert found.helps == ()


def test_each_card_says_what_is_left_of_it_who_holds_it_and_what_is_in_the_way() -> None:
    found = explained(in_use(), pod("new", milli=500))
    assert found.message == "0/2 nodes are available: 2 Insufficient GPU share."
    (card,) = found.nodes[0].cards
    assert (card.card, card.share_left_milli, card.holders) == ("m-0", 300, ("team/a",))
    assert card.obstacles == (
        "300 milli of share are left, 500 are asked for",
        "4915Mi of memory are left, 8192Mi are asked for",
    )


@pytest.mark.parametrize(
    ("card", "annotations", "obstacle"),
    [
        ("lost", {}, "it is lost"),
        ("degraded: xid 63", {}, "it is degraded: xid 63"),
        ("ok", {"partage.dev/models": "H100"}, "its model T4 is not asked for"),
        ("ok", {"partage.dev/cards-not": "m-0"}, "its id is not asked for"),
    ],
)
def test_what_else_may_be_in_the_way_of_a_card(card: str, annotations: dict[str, str], obstacle: str) -> None:
    stage = Stage(m=1)
    stage.cluster.node(carded("m", card))
    found = explained(stage, pod("new", milli=1, annotations=annotations))
    assert found.nodes[0].cards[0].obstacles == (obstacle,)


def test_tags_that_keep_a_pod_away_are_named() -> None:
    stage = Stage(m=1)
    stage.place(pod("a", milli=100, annotations={"partage.dev/exclusion": "blue"}))
    (card,) = explained(stage, pod("new", milli=100)).nodes[0].cards
    assert card.obstacles == ("tags of who is on it keep the pod away (affinity, anti-affinity or exclusion)",)
    joins = pod("new", milli=100, annotations={"partage.dev/exclusion": "blue"})
    assert explained(stage, joins).nodes[0].cards[0].obstacles == ()


def test_every_reason_of_a_node_is_told_and_not_only_the_first() -> None:
    stage = in_use()
    stage.cluster.node(carded("m", "ok", unschedulable=True))
    found = explained(stage, pod("new", milli=500, cpu="2"))
    (m,) = [each for each in found.nodes if each.node == "m"]
    assert m.reasons == ("node(s) were unschedulable", "Insufficient cpu", "Insufficient GPU share")
    assert m.codes == ("cordoned", "insufficient", "gpu/share")
    assert found.nodes[0].node == "n", "the fewest reasons first"


def test_the_most_that_a_container_could_have_is_found() -> None:
    assert changes(explained(in_use(), pod("new", milli=500))) == {
        "container main: a share of at most 300 milli of a card": "m"
    }


def test_another_model_helps_where_none_is_of_that_name() -> None:
    found = explained(in_use(), pod("new", milli=200, annotations={"partage.dev/models": "h1000"}))
    assert found.message == "0/2 nodes are available: 2 node(s) had no card of a model as asked for (there are T4)."
    assert changes(found) == {"container main: any model of card": "m"}


def test_less_cpu_helps_where_that_is_all_that_lacks() -> None:
    assert changes(explained(in_use(), pod("new", milli=200, cpu="3"))) == {
        "2000 milli of CPU less": "m",
        "container main: a share of at most 100 milli of a card": "n",
    }


def test_a_node_that_is_barred_is_named_with_its_reason() -> None:
    stage = Stage(m=1)
    stage.cluster.node(carded("m", "ok", unschedulable=True))
    assert changes(explained(stage, pod("new", milli=200))) == {"this out of its way: node(s) were unschedulable": "m"}


def test_what_is_written_wrongly_is_refused() -> None:
    with pytest.raises(DecodeError):
        explain(Stage(m=1).cycle, pod("new", milli=1500), NOW)


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
    assert found.state == "refused"
    assert found.message.startswith("it is written wrongly: ")
    two = pod("new", milli=500, annotations={"gpu-fraction": "0.5"})
    assert stands(Preempted(m=1), two).message.endswith("kai-dialect and native-dialect; use one of them")
