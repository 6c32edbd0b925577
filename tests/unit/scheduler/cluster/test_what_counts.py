"""An allocation verified for a pod counts until the pod is gone, even if its annotations change."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from partage_plugins.api import Allocation, NodeName, PodUid, keys
from partage_plugins.errors import PartageError
from partage_scheduler.cluster import Asks
from partage_scheduler.cluster.unknown import CLOSED
from partage_scheduler.cluster.verified import BROKEN, OLDER, STRIPPED, UNKNOWN, UNREADABLE
from partage_scheduler.objects import ApiPod, seen
from support.objects import given, pod
from unit.scheduler.cluster.cards import Cards, carded, granted
from unit.scheduler.cluster.stage import FREED, POD, Stage, holding, piled

WHOLE = granted("uid-a", "n", 0, 1000)
NEW = pod("new", milli=1000)
A = PodUid("uid-a")


def stage_of(*pods: ApiPod, cards: int = 1) -> Cards:
    stage = Cards()
    stage.cluster.node(carded("n", *["ok"] * cards))
    stage.cluster.heartbeat("n", 0.0, 0.0)
    for each in pods:
        stage.cluster.pod(each)
    return stage


def noted(annotations: Mapping[str, str], version: int = 0, *, milli: int = 1000) -> ApiPod:
    return pod("a", node="n", milli=milli, version=version, annotations=annotations)


def of_gen(gen: int, milli: int = 1000) -> Allocation:
    return replace(granted("uid-a", "n", 0, milli), gen=gen)


BROKEN_TEXT = {keys.ALLOCATION: '{"v":1', keys.SIGNATURE: "good"}


@pytest.mark.parametrize(
    ("notes", "words"),
    [
        ({}, STRIPPED),
        ({keys.SIGNATURE: "good"}, STRIPPED),
        ({keys.ALLOCATION: given(WHOLE)[keys.ALLOCATION]}, BROKEN),
        (given(WHOLE, "forged"), BROKEN),
        (given(granted("uid-a", "n", 0, 1), "forged"), BROKEN),
        (BROKEN_TEXT, BROKEN),
        (given(granted("uid-other", "n", 0, 1)), BROKEN),
        (given(granted("uid-a", "elsewhere", 0, 1)), BROKEN),
        (given(of_gen(1, 1)), OLDER),
        (given(of_gen(2, 1)), OLDER),
    ],
    ids=["off", "text off", "signature off", "forged", "other", "broken", "pod", "node", "older", "same gen"],
)
def test_a_card_is_not_free_while_a_pod_runs_whose_allocation_was_changed(notes: dict[str, str], words: str) -> None:
    stage = stage_of(noted(given(of_gen(2)), 1))
    stage.cluster.pod(noted(notes, 2))
    assert stage.left("n") == [(0, 0)]
    assert stage.decide(NEW) is None
    assert stage.cluster.verified.flagged == {A: words}
    assert stage.events == [("a", words)]
    assert stage.cluster.pod_gone(A) == FREED
    assert stage.left("n") == [(1000, 16)]
    assert not stage.cluster.verified.flagged


def test_a_pod_is_told_once_for_each_change_and_no_more_when_it_is_as_it_was() -> None:
    stage = stage_of(noted(given(WHOLE), 1), noted({}, 2))
    stage.cluster.pod(replace(noted({}, 3), status=replace(NEW.status, phase="Running")))
    stage.cluster.pod(noted(BROKEN_TEXT, 4))
    assert stage.events == [("a", STRIPPED), ("a", BROKEN)]
    stage.cluster.pod(noted(given(WHOLE), 5))
    assert not stage.cluster.verified.flagged
    assert len(stage.events) == 2


def test_a_pod_that_was_bound_and_lost_its_allocation_before_it_was_seen_keeps_what_was_written() -> None:
    stage = stage_of(cards=2)
    decision = stage.decide(pod("a", milli=1000))
    stage.cluster.assume(pod("a", milli=1000), decision)  # type: ignore[arg-type]
    stage.cluster.confirmed(A)
    stage.cluster.pod(noted({}))
    assert stage.left("n") == [(0, 0), (1000, 16)]
    assert stage.cluster.verified.flagged == {A: STRIPPED}


@pytest.mark.parametrize("notes", [{}, given(WHOLE, "forged")], ids=["off", "forged"])
def test_of_a_pod_that_was_never_verified_the_request_counts_on_every_card(notes: dict[str, str]) -> None:
    stage = stage_of(noted(notes, milli=600), cards=2)
    assert stage.left("n") == [(400, 6), (400, 6)]
    assert stage.cluster.verified.flagged == {A: UNKNOWN}
    assert stage.events == [("a", UNKNOWN)]
    assert stage.decide(pod("new", milli=600)) is None
    assert stage.cluster.pod(noted(given(granted("uid-a", "n", 1, 600)), 2)) == FREED | POD
    assert stage.left("n") == [(1000, 16), (400, 6)]
    assert not stage.cluster.verified.flagged


def test_what_counts_everywhere_goes_with_its_pod_and_takes_nothing_of_others_along() -> None:
    other = pod("b", node="n", milli=700, annotations=given(granted("uid-b", "n", 0, 700)))
    stage = stage_of(noted({}), other, cards=2)
    assert stage.left("n") == [(-700, -12), (0, 0)]
    stage.cluster.pod_gone(A)
    assert stage.left("n") == [(300, 4), (1000, 16)]
    stage = stage_of(other, noted({}), cards=2)
    stage.cluster.pod_gone(PodUid("uid-b"))
    assert stage.left("n") == [(0, 0), (0, 0)]


def test_cards_on_which_too_much_counts_are_full_and_not_ill() -> None:
    stage = stage_of(noted({}), pod("b", node="n", annotations=given(granted("uid-b", "n", 0, 700))))
    asked = stage.request(NEW)
    assert [reason.code for reason in stage.decider.explain(asked).reasons] == ["gpu/share"]


@pytest.mark.parametrize("tag", ["exclusion", "anti-affinity"])
def test_tags_of_a_pod_that_was_never_verified_hold_on_every_card(tag: str) -> None:
    tagged = {f"partage.dev/{tag}": "x"}
    stage = stage_of(pod("a", node="n", milli=10, annotations=tagged), cards=2)
    assert bool(stage.decide(pod("new", milli=100))) == (tag != "exclusion")
    assert bool(stage.decide(pod("new", milli=100, annotations=tagged))) == (tag == "exclusion")


def test_nobody_joins_a_pod_of_which_nobody_knows_where_it_is() -> None:
    near = {"partage.dev/affinity": "x"}
    stage = stage_of(pod("a", node="n", milli=10, annotations=near))
    assert stage.decide(pod("new", milli=10, annotations=near)) is None


def test_more_cards_than_one_count_on_one_only_where_they_may_be_one() -> None:
    two = {"resources": {"limits": {keys.GPU_MILLI: "800", keys.GPUS: "2"}}, "name": "main"}
    assert stage_of(pod("a", node="n", containers=[two])).left("n") == [(600, 9)]
    repeated = {keys.REPEAT_CARDS: "yes"}
    assert stage_of(pod("a", node="n", containers=[two], annotations=repeated)).left("n") == [(200, 3)]


UNREAD = {"partage.dev/exclusion": "not a tag!"}


def test_a_node_takes_no_new_shares_while_a_pod_is_there_whose_request_can_not_be_read() -> None:
    stage = stage_of(pod("a", node="n", milli=10, annotations=UNREAD))
    assert stage.decide(NEW) is None
    assert stage.decide(pod("new", cpu="1")) is not None
    assert stage.cluster.verified.flagged == {A: UNREADABLE}
    (barred,) = stage.cluster.barred(NEW, stage.request(NEW), 0.0)
    assert barred.reason == CLOSED
    assert stage.cluster.pod_gone(A) == FREED
    assert stage.decide(NEW) is not None


def test_a_pod_that_asks_for_none_of_our_resources_closes_no_node() -> None:
    stage = stage_of(pod("a", node="n", cpu="1", annotations=UNREAD))
    assert stage.decide(NEW) is not None
    assert not stage.cluster.verified.flagged
    with pytest.raises(PartageError):
        stage.request(pod("a", annotations=UNREAD))


def test_what_a_pod_on_a_node_asks_for_by_labels_counts_for_nothing_since_it_may_write_them_there() -> None:
    """Otherwise anyone who may edit a pod could close its node to all others."""
    reads = Cards().framework.requests
    asks = Asks(lambda _: reads(seen(NEW)), (keys.PREFIX,))
    assert asks.of(pod("a", node="n", labels={"sharedgpu/gpu_limit": "1.0"})) is None
    assert asks.of(pod("a", node="n", milli=1)) is not None


def test_a_node_takes_no_new_requests_of_a_kind_that_can_not_count_on_every_device() -> None:
    stage = Stage(piled("n", 3), piled("m", 3))
    stage.pod(pod("a", node="n", annotations={"things": "1"}))
    assert stage.why_not() == {CLOSED.words: ["n"]}
    assert stage.why_not(devices=0) == {}
    stage.cluster.node_gone("n")
    assert stage.why_not() == {}
    stage.cluster.node(piled("n", 3, uid="anew"))
    assert stage.why_not()[CLOSED.words] == ["n"]
    stage.pod(holding("a", "n", "t0"))
    assert stage.why_not() == {}


def test_one_may_imagine_a_closed_node_without_who_closes_it() -> None:
    stage = Stage(piled("n", 3))
    stage.pod(pod("a", node="n", annotations={"things": "1"}))
    with stage.cluster.what_if() as world:
        (placed,) = stage.cluster.placed_pods.on(NodeName("n"))
        world.remove(placed)
        assert stage.why_not() == {}
    assert list(stage.why_not().values()) == [["n"]]
