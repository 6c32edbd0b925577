"""Pods with claims go through the ordinary scheduling cycle; existing allocations count as they are written."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_plugins.api import GPU, GpuGrant, Ready
from partage_scheduler.claims.results import holder_of
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.cycle import Bind
from partage_scheduler.queue import Waiting
from support.claim_objects import request
from support.gpu_fleet import GIB
from support.objects import node, pod
from unit.scheduler.claims.made import NOW, Stage, allocated, claim, claimable, templated, using


def grants_of(bind: Bind) -> list[GpuGrant]:
    return [grant for each in bind.claims for _, grant in each.given]


def test_a_claim_is_given_a_card_and_its_pod_no_allocation_of_its_own() -> None:
    stage = Stage(claimable("n", 2))
    stage.claims.put(claim("c"))
    bind = stage.binds(using("p", "c"))
    assert not bind.decision.allocation.containers
    (grant,) = grants_of(bind)
    assert (grant.share_milli, grant.memory_bytes, bind.claims[0].node) == (300, GIB, "n")


def test_claims_fill_one_card_after_another() -> None:
    stage = Stage(claimable("m", 2), claimable("n", 2))
    cards: list[str] = []
    for number in range(6):
        stage.claims.put(claim(f"c{number}"))
        cards += [grant.card for grant in grants_of(stage.binds(using(f"p{number}", f"c{number}")))]
    assert len(set(cards)) == 2
    assert len({card[0] for card in cards}) == 1


def test_requests_of_one_claim_may_share_a_card_and_counted_devices_do_not() -> None:
    stage = Stage(claimable("n", 1))
    stage.claims.put(claim("both", request(name="a"), request(name="b")))
    assert [grant.card for grant in grants_of(stage.binds(using("p", "both")))] == ["n-0", "n-0"]
    stage.claims.put(claim("two", request(share="10", memory="1Gi", count=2)))
    assert "too few healthy cards" in stage.says(using("q", "two"))


def test_cards_for_claims_and_cards_for_shares_are_never_mixed_up() -> None:
    stage = Stage(claimable("c", 1), claimable("s", 1, pool="shared", ready=Ready(crishim=True, broker=True)))
    stage.claims.put(claim("c"))
    assert stage.binds(using("p", "c")).decision.node == "c"
    assert stage.binds(pod("q", milli=500)).decision.node == "s"
    assert stage.says(pod("r", milli=600)) == (
        "0/2 nodes are available: 1 Insufficient GPU share, 1 node(s) had no crishim in force."
    )


def test_a_node_needs_a_broker_for_claims_and_no_crishim() -> None:
    stage = Stage(claimable("n", 1, ready=Ready(crishim=True, broker=False)))
    stage.claims.put(claim("c"))
    assert stage.says(using("p", "c")) == "0/1 nodes are available: 1 node(s) had no broker in force."
    stage.cluster.node(claimable("n", 1, version=2))
    assert stage.binds(using("p", "c")).claims


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (request(share="800"), "1 Insufficient GPU share"),
        (request(share="0", memory="16Gi"), "1 Insufficient GPU memory"),
        (request(count=2), "1 node(s) had too few healthy cards to share"),
    ],
)
def test_no_room_is_said_in_the_words_and_figures_of_all_pods(asked: dict[str, object], words: str) -> None:
    stage = Stage(claimable("n", 1))
    stage.runs(using("p", "c"), claim("c"))
    stage.claims.put(claim("d", asked))
    assert stage.says(using("q", "d")) == f"0/1 nodes are available: {words}."


def test_a_pod_waits_for_its_claim_to_be_made_and_is_tried_when_it_is() -> None:
    stage = Stage(claimable("n", 1))
    stay = stage.stays(templated("p"))
    assert (stay.message, stay.cluster_events) == (
        '0/1 nodes are available: waiting for a resource claim to be made of template "third".',
        frozenset((ClusterEvent.CLAIM,)),
    )
    assert 'resourceclaim "c" not found' in stage.says(templated("p", "c"))
    stage.claims.put(claim("c"))
    assert stage.binds(templated("p", "c")).claims


def test_a_template_of_which_no_claim_is_needed_asks_for_nothing() -> None:
    stage = Stage(claimable("n", 0))
    found = templated("p", "c")
    none = replace(found.status.resource_claim_statuses[0], resource_claim_name=None)
    assert not stage.binds(replace(found, status=replace(found.status, resource_claim_statuses=(none,)))).claims


def test_a_claim_that_is_written_wrongly_is_its_owners_to_repair() -> None:
    stage = Stage(claimable("n", 1))
    stage.claims.put(claim("c", request(share="1100")))
    stay = stage.stays(using("p", "c"))
    assert stay.message.startswith("claim c, request gpu asks for '1100' of share")
    assert stay.cluster_events == {ClusterEvent.CLAIM}


def test_an_allocated_claim_pins_its_pods_to_its_node_and_takes_nothing_more() -> None:
    stage = Stage(claimable("m", 1), claimable("n", 1))
    (stands,) = stage.runs(using("p", "c", nodeSelector={}), claim("c", request(share="1000", memory=None)))
    home = stage.cluster.placed_pods.node_of(using("p").uid)
    bind = stage.binds(using("q", "c"))
    assert bind.decision.node == home
    assert [each.given for each in bind.claims] == [()]
    other = next(name for name in ("m", "n") if name != home)
    busy = using("r", "c", nodeSelector={"kubernetes.io/hostname": other})
    assert "node(s) didn't have the cards of claim c" in stage.says(busy)
    assert stands.results


def test_a_second_pod_of_a_claim_that_is_being_written_goes_where_it_goes() -> None:
    stage = Stage(claimable("m", 1), claimable("n", 1))
    stage.claims.put(claim("c"))
    first, second = stage.binds(using("p", "c")), stage.binds(using("q", "c"))
    assert second.decision.node == first.decision.node
    assert not grants_of(second)


def test_what_was_decided_is_free_again_once_it_is_undone_and_held_once_it_stands() -> None:
    stage = Stage(claimable("n", 1))
    whole = claim("c", request(share="1000", memory=None))
    stage.claims.put(whole)
    stage.binds(using("p", "c"))
    stage.cluster.undo(using("p").uid)
    bind = stage.binds(using("p", "c"))
    stage.claims.put(allocated(whole, bind.claims[0], bind.pod))
    stage.cluster.undo(bind.pod.uid)
    stage.claims.put(claim("d"))
    assert "Insufficient GPU share" in stage.says(using("q", "d"))
    assert stage.claims.put(whole), "it was let go of"
    assert stage.binds(using("q", "d")).claims


def test_an_older_word_of_a_claim_does_not_free_what_is_about_to_be_written() -> None:
    stage = Stage(claimable("n", 1))
    stage.claims.put(claim("c", request(share="1000")))
    stage.binds(using("p", "c"))
    meta = stage.claims.get("team", "c")
    assert meta is not None
    stage.claims.put(replace(meta, metadata=replace(meta.metadata, finalizers=("x",))))
    stage.claims.put(claim("d"))
    assert "Insufficient GPU share" in stage.says(using("q", "d"))


def test_a_new_scheduler_counts_what_stands_and_goes_on_with_a_pod_that_was_not_bound() -> None:
    before = Stage(claimable("m", 1), claimable("n", 1))
    before.claims.put(claim("c"))
    bind = before.binds(using("p", "c"))
    stands = allocated(claim("c"), bind.claims[0], bind.pod)
    after = Stage()
    after.claims.put(stands)
    for name in ("m", "n"):
        after.cluster.node(claimable(name, 1))
        after.cluster.heartbeat(name, NOW, NOW)
    again = after.binds(using("p", "c"))
    assert again.decision.node == bind.decision.node
    assert not grants_of(again)
    rest = claim("d", request(share="800", memory="1Gi"))
    after.claims.put(rest)
    assert after.binds(using("q", "d")).decision.node != bind.decision.node


def test_a_claim_that_only_its_waiting_pod_has_can_be_let_go_of() -> None:
    stage = Stage(claimable("n", 1))
    (stands,) = stage.runs(using("p", "c"), claim("c"))
    assert stage.claims.needless(using("p", "c")) == (stands,)
    assert stage.claims.needless(using("q", "c")) == ()


def test_allocations_that_others_wrote_count_as_they_stand() -> None:
    stage = Stage(claimable("n", 2))
    stage.claims.put(claim("c"))
    grant = stage.binds(using("p", "c")).claims[0]
    stage.cluster.undo(using("p").uid)
    stands = allocated(claim("c"), grant)
    (one,) = stands.results
    for odd in (
        replace(one, consumed_capacity={"share": "99999", "memory": "1Ei"}),
        replace(one, consumed_capacity={}),
    ):
        allocation = stands.status.allocation
        assert allocation is not None
        devices = replace(allocation.devices, results=(odd,))
        stage.claims.put(
            replace(stands, status=replace(stands.status, allocation=replace(allocation, devices=devices)))
        )
        held = stage.decider.ledger.holding(holder_of("uid-c", grant.node))
        assert held is not None
        (grants,) = held.allocation.of(GPU).values()
        assert (grants[0].share_milli, grants[0].memory_bytes) == (1000, 16 * GIB)
    stage.claims.put(claim("d", request(count=2)))
    assert "Insufficient GPU share" in stage.says(using("q", "d"))


def test_a_claim_of_another_driver_that_is_allocated_is_not_ours_to_place() -> None:
    stage = Stage(claimable("n", 1))
    (stands,) = stage.runs(using("p", "c"), claim("c"))
    allocation = stands.status.allocation
    assert allocation is not None
    devices = replace(allocation.devices, results=(replace(stands.results[0], driver="gpu.example.org"),))
    stage.claims.put(replace(stands, status=replace(stands.status, allocation=replace(allocation, devices=devices))))
    assert "was allocated by others" in stage.says(using("q", "c"))


def test_pods_of_a_gang_with_claims_are_placed_all_or_none() -> None:
    stage = Stage(claimable("n", 1))
    pods = [using(f"p{number}", f"c{number}") for number in range(3)]
    for number in range(3):
        stage.claims.put(claim(f"c{number}", request(share="400")))
    verdicts = stage.cycle.decide(Waiting(tuple(pods)), NOW)
    assert "Insufficient GPU share" in next(each for each in verdicts if not isinstance(each, Bind)).message
    stage.claims.put(claim("all", request(share="1000", memory=None)))
    assert stage.binds(using("q", "all")).claims, "nothing is held by any of them"


def test_without_the_setting_claims_are_others_business_and_so_are_their_cards() -> None:
    stage = Stage(claimable("n", 1), ours="")
    assert "pod has resource claims (DRA), which this scheduler does not allocate" in stage.says(using("p", "c"))
    stage.cluster.node(node("x", stage.cluster.inventory(claimable("n", 1).name)))
    assert "crishim" in stage.says(pod("q", milli=100))


def test_pods_of_other_schedulers_are_not_asked_about_their_claims() -> None:
    stage = Stage(claimable("n", 1))
    other = using("p", "c", schedulerName="default-scheduler")
    assert stage.cycle.request(other).containers == ()


def test_what_claims_of_a_pod_hold_is_told_whoever_placed_it() -> None:
    stage = Stage(claimable("n", 1))
    stage.runs(using("p", "c"), claim("c"))
    ((local, held),) = stage.claims.held(using("p", "c", schedulerName="default-scheduler"))
    ((grant,),) = held.of(GPU).values()
    assert (local, grant.share_milli) == ("c", 300)
    assert stage.claims.held(templated("q")) == []
