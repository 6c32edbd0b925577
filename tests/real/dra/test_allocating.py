"""Our scheduler allocates claims on real Kubernetes: their pods' devices, and writes that are denied to others."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

from rig.client.resources import CLUSTER_ROLES, RESOURCE_CLAIMS
from rig.client.rights import may
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import SCHEDULER, TEAM
from rig.rig import Rig
from support.claim_objects import devices, request
from support.claims_stage import ClaimsStage, allocating, forged
from support.dra_stage import DraStage
from support.isolation_stage import ask, seen
from support.simgpu_stage import UUIDS

MIB_OF_GIB = 1024
ROLE = CLUSTER_ROLES.at(name="partage-scheduler")


@pytest.fixture(scope="module")
def lasting_allocator(lasting_stage: DraStage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClaimsStage]:
    with allocating(lasting_stage, root=tmp_path_factory.mktemp("scheduler"), say=print) as stage:
        yield stage


@pytest.fixture
def stage(lasting_allocator: ClaimsStage, rig: Rig) -> Iterator[ClaimsStage]:
    yield lasting_allocator
    lasting_allocator.claims.clear()


def test_a_pod_has_what_its_claim_says_and_no_more(stage: ClaimsStage) -> None:
    pod = stage.claims.pod("train", devices(request(300, "1Gi"), limit_milli=500))
    pod.wait_running()
    assert stage.claims.slice() is None
    assert seen(pod)["total"] == MIB_OF_GIB
    assert ask(pod, "take 100") == "took 100"
    assert ask(pod, "take 2000") != "took 2000"
    uid = stage.claims.claim_of(pod)["metadata"]["uid"]
    told = stage.claims.told(uid)
    assert told is not None
    (card,) = told.cards
    assert (card.limit_bytes, card.share_milli, card.limit_milli) == (MIB_OF_GIB << 20, 300, 500)
    pod.delete_and_wait()
    stage.claims.wait_nothing_left(uid)


def test_claims_fill_a_card_before_they_take_another(stage: ClaimsStage) -> None:
    pods = [stage.claims.pod(f"third-{number}", devices(request(300, "1Gi"))) for number in range(3)]
    for pod in pods:
        pod.wait_running()
    results = [stage.claims.claim_of(pod)["status"]["allocation"]["devices"]["results"][0] for pod in pods]
    assert len({each["device"] for each in results}) == 1


def test_pods_of_one_claim_have_it_together(stage: ClaimsStage) -> None:
    stage.claims.claim("together", devices(request(300, "1Gi")))
    pods = [stage.claims.pod(f"together-{name}", claim="together") for name in ("a", "b")]
    for pod in pods:
        pod.wait_running()
    reserved = stage.claim("together")["status"]["reservedFor"]
    assert {each["name"] for each in reserved} == {pod.name for pod in pods}
    assert ask(pods[0], "take 300") == "took 300"
    assert ask(pods[1], "take 300") != "took 300", "two contexts and 600 MiB are more than both may have"
    for pod in pods:
        pod.delete_and_wait()
    until(
        "it is let go of",
        lambda: (
            str(stage.claim("together")["status"])
            if "allocation" in stage.claim("together").get("status", {})
            else None
        ),
    )


def test_a_pod_without_room_is_told_so_in_figures_and_starts_when_there_is_some(stage: ClaimsStage) -> None:
    holders = [stage.claims.pod(f"holds-{number}", devices(request(900, "1Gi"))) for number in range(len(UUIDS))]
    for pod in holders:
        pod.wait_running()
    waits = stage.claims.pod("waits", devices(request(200, "1Gi")))
    waits.wait_why("0/1 nodes are available: 1 Insufficient GPU share.")
    holders[0].delete_and_wait()
    waits.wait_running()


def test_a_pod_whose_scheduler_was_killed_before_it_was_bound_starts_with_what_it_was_given(stage: ClaimsStage) -> None:
    with _without_bindings(stage):
        pod = stage.claims.pod("carried", devices(request(300, "1Gi")))
        until("its claim is allocated", lambda: _why_not_allocated(stage, "carried"))
        stage.scheduler.kill()
    before = stage.claims.claim_of(pod)["status"]["allocation"]
    assert not pod.refresh()["spec"].get("nodeName")
    stage.start_scheduler()
    pod.wait_running()
    assert stage.claims.claim_of(pod)["status"]["allocation"] == before


def test_nobody_else_allocates_our_devices_or_takes_an_allocation_back(stage: ClaimsStage) -> None:
    """This holds even for an administrator with every right, and for clients that may write any status."""
    api = stage.cluster.api
    stage.claims.claim("forged", devices(request(300, "1Gi")))
    with pytest.raises(Refused) as refused:
        stage.claims.allocate("forged", forged(UUIDS[0]))
    assert "devices of gpu.partage.dev are allocated by partage-scheduler alone" in refused.value.message
    pod = stage.claims.pod("honest", claim="forged")
    pod.wait_running()
    with pytest.raises(Refused) as refused:
        api.patch(RESOURCE_CLAIMS.at(TEAM, "forged", "status"), {"status": {"allocation": None, "reservedFor": None}})
    assert "taken back by partage-scheduler and kube-controller-manager alone" in refused.value.message


def _why_not_allocated(stage: ClaimsStage, owner: str) -> str | None:
    claims = stage.cluster.api.list(RESOURCE_CLAIMS.at(TEAM))
    mine = [each for each in claims if each["metadata"]["name"].startswith(f"{owner}-")]
    return None if mine and "allocation" in mine[0].get("status", {}) else str(mine)


@contextmanager
def _without_bindings(stage: ClaimsStage) -> Generator[None]:
    """The scheduler may write claims but can't bind, as if it died in between."""
    api = stage.cluster.api
    before = api.get(ROLE)["rules"]
    api.patch(ROLE, {"rules": [rule for rule in before if rule["resources"] != ["pods/binding"]]})
    until("it can't bind", lambda: "it can" if _may_bind(stage) else None)
    try:
        yield
    finally:
        api.patch(ROLE, {"rules": before})
        until("it can bind again", lambda: None if _may_bind(stage) else "it can't")


def _may_bind(stage: ClaimsStage) -> bool:
    return may(stage.cluster, SCHEDULER.user, verb="create", resource="pods", subresource="binding")
