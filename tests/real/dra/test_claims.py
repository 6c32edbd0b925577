"""Pods with claims that kube-scheduler allocates, on an unmodified kubelet: their devices, and leftovers."""

from __future__ import annotations

from http import HTTPStatus

from rig.client.resources import RESOURCE_CLAIMS
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import TEAM
from support.claim_objects import devices, request
from support.dra_stage import DraStage
from support.isolation_stage import ask, seen

MIB_OF_GIB = 1024


def test_a_pod_has_what_its_claim_says_and_no_more(stage: DraStage) -> None:
    pod = stage.pod("train", devices(request(300, "1Gi"), limit_milli=500)).wait_running()
    uid = stage.claim_of(pod)["metadata"]["uid"]
    assert stage.specs() == [f"partage.dev-share_{uid}.json"]
    assert seen(pod)["total"] == MIB_OF_GIB
    assert ask(pod, "take 100") == "took 100"
    assert ask(pod, "take 2000") != "took 2000"
    told = stage.told(uid)
    assert told is not None
    assert told.is_claim
    (card,) = told.cards
    assert (card.limit_bytes, card.share_milli, card.limit_milli) == (MIB_OF_GIB << 20, 300, 500)
    pod.delete_and_wait()
    stage.wait_nothing_left(uid)


def test_pods_of_one_claim_have_it_together_and_it_ends_with_the_last(stage: DraStage) -> None:
    uid = stage.claim("together", devices(request(300, "1Gi")))
    one, other = (stage.pod(f"together-{name}", claim="together") for name in ("a", "b"))
    for pod in (one, other):
        pod.wait_running()
    assert ask(one, "take 300") == "took 300"
    assert ask(other, "take 300") != "took 300", "two contexts and 600 MiB are more than both may have"
    one.delete_and_wait()
    assert stage.record(uid) is not None
    until("what the first had is free", lambda: None if ask(other, "take 300") == "took 300" else "it is not")
    other.delete_and_wait()
    stage.wait_nothing_left(uid)


def test_who_looks_on_as_an_administrator_has_the_card_and_takes_no_room(stage: DraStage) -> None:
    with stage.administrated():
        watch = stage.pod("watch", devices(request(None, None, adminAccess=True))).wait_running()
        assert seen(watch)["total"] > 70 * MIB_OF_GIB
        record = stage.record(stage.claim_of(watch)["metadata"]["uid"])
        assert record is not None
        assert record.grants == ()


def test_an_allocation_that_gives_more_than_the_card_has_is_refused_in_words(stage: DraStage) -> None:
    """Written as by a second allocator; kube-scheduler never does this."""
    first = stage.pod("first", devices(request(700, "1Gi"))).wait_running()
    allocation = stage.claim_of(first)["status"]["allocation"]
    stage.claim("forged", devices(request(700, "1Gi")))
    stage.allocate("forged", allocation)
    pod = stage.pod("second", claim="forged", node=stage.node.name)
    pod.wait_event("would have 1400 milli of 1000 together")


def test_a_claim_that_is_deleted_by_force_leaves_nothing_behind(stage: DraStage) -> None:
    pod = stage.pod("forced").wait_running()
    claim = stage.claim_of(pod)
    path = RESOURCE_CLAIMS.at(TEAM, claim["metadata"]["name"])
    pod.delete(grace_s=0)
    try:
        stage.rig.cluster.api.patch(path, {"metadata": {"finalizers": None}})
    except Refused as gone:  # Kubernetes' own controller was faster
        if gone.status != HTTPStatus.NOT_FOUND:
            raise
    pod.wait_gone()
    stage.wait_nothing_left(claim["metadata"]["uid"])


def test_with_two_claims_a_container_is_stopped(stage: DraStage) -> None:
    """With crishim it would be refused.

    Otherwise one claim's files cover the other's, and it is unknown whose limits hold.
    """
    pod = stage.pod_with_two("two")
    pod.wait_failed()
    assert "mounted at /etc/ld.so.preload is covered" in stage.broker.tail()
