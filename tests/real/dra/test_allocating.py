"""Our scheduler allocates claims on real Kubernetes: their pods' devices, and writes that are denied to others.

The admission policy that lets only the scheduler write allocations is in force, with the RBAC that we deliver, and the
driver publishes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from partage_plugins.api import GPU, Ready
from partage_plugins.api.keys import INVENTORY
from partage_plugins.codecs import decode_inventory
from rig.client.cluster import Cluster
from rig.client.policies import why_not_denied
from rig.client.resources import LEASES, RESOURCE_CLAIMS, RESOURCE_SLICES, Json, path_of
from rig.client.rights import without_right
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, TEAM
from rig.identity.permissions import CLAIMS_FILES, delivered
from support.claim_objects import devices, request, result
from support.crishim_stage import NODE
from support.dra_stage import DraStage
from support.isolation_stage import ask, inventory, seen
from support.objects import lease_body, written
from support.scheduler_process import SchedulerProcess, new_key, shown
from support.simgpu_stage import UUIDS

pytestmark = pytest.mark.usefixtures("scheduler")
MIB_OF_GIB = 1024
FLAGS = ("--claims", "--no-elect", "--silent-after-s", "3600", "--log-format", "text")
DENIED = "devices of gpu.partage.dev are allocated by partage-scheduler alone"


@pytest.fixture(scope="module")
def scheduler(lasting_stage: DraStage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SchedulerProcess]:
    """Our scheduler, which allocates the claims of the stage's pods meanwhile."""
    cluster, root = lasting_stage.rig.cluster, tmp_path_factory.mktemp("scheduler")
    manifests = [each for file in CLAIMS_FILES for each in delivered(file)]
    for manifest in manifests:
        cluster.api.apply(manifest)
    publish(lasting_stage, is_on=False)
    join(cluster)
    new_key(root)
    lasting_stage.scheduler = "partage-scheduler"
    until("only the scheduler allocates", lambda: why_not_in_force(lasting_stage))
    with shown(SchedulerProcess(cluster.as_account(SCHEDULER).kubectl.kubeconfig, root, *FLAGS)) as scheduler:
        scheduler.start()
        yield scheduler
    lasting_stage.scheduler = "default-scheduler"
    for manifest in reversed(manifests):
        cluster.api.delete(path_of(manifest))
    until("everybody allocates", lambda: None if why_not_in_force(lasting_stage) else "it is forbidden")
    cluster.nodes.annotate(NODE, {INVENTORY: None})
    cluster.api.delete(LEASES.at(OUR_NAMESPACE, NODE))
    publish(lasting_stage, is_on=True)


def publish(stage: DraStage, *, is_on: bool) -> None:
    """Restart the driver, with publishing of the node's devices on or off."""
    stage.driver.kill()
    stage.rig.cluster.api.delete(RESOURCE_SLICES.at())
    stage.replace_driver(*(() if is_on else ("--no-publish",)))
    if is_on:
        stage.wait_published()


def join(cluster: Cluster) -> None:
    """Write what the node's advertiser would write."""
    known = decode_inventory(inventory("dra"), (GPU,))
    cluster.nodes.annotate(NODE, {INVENTORY: written(replace(known, ready=Ready(broker=True)))})
    cluster.api.create(LEASES.at(OUR_NAMESPACE), lease_body(NODE))


def why_not_in_force(stage: DraStage) -> str | None:
    stage.claim("premature", devices(request()))
    try:
        return why_not_denied((DENIED, lambda: stage.allocate("premature", forged("gpu-0"))))
    finally:
        stage.clear()


def forged(card: str) -> Json:
    """A forged allocation of a whole card that the API server accepts."""
    return {"devices": {"results": [result(card.lower(), "1000", "1Gi", pool=NODE)]}}


def claim(stage: DraStage, name: str) -> Json:
    return stage.rig.cluster.api.get(RESOURCE_CLAIMS.at(TEAM, name))


def test_a_pod_has_what_its_claim_says_and_no_more(stage: DraStage) -> None:
    pod = stage.pod("train", devices(request(300, "1Gi"), limit_milli=500)).wait_running()
    assert not stage.slices()
    assert seen(pod)["total"] == MIB_OF_GIB
    assert ask(pod, "take 100") == "took 100"
    assert ask(pod, "take 2000") != "took 2000"
    uid = stage.claim_of(pod)["metadata"]["uid"]
    told = stage.told(uid)
    assert told is not None
    (card,) = told.cards
    assert (card.limit_bytes, card.share_milli, card.limit_milli) == (MIB_OF_GIB << 20, 300, 500)
    pod.delete_and_wait()
    stage.wait_nothing_left(uid)


def test_claims_fill_a_card_before_they_take_another(stage: DraStage) -> None:
    pods = [stage.pod(f"third-{number}", devices(request(300, "1Gi"))) for number in range(3)]
    for pod in pods:
        pod.wait_running()
    results = [stage.claim_of(pod)["status"]["allocation"]["devices"]["results"][0] for pod in pods]
    assert len({each["device"] for each in results}) == 1


def test_pods_of_one_claim_have_it_together(stage: DraStage) -> None:
    stage.claim("together", devices(request(300, "1Gi")))
    pods = [stage.pod(f"together-{name}", claim="together") for name in ("a", "b")]
    for pod in pods:
        pod.wait_running()
    reserved = claim(stage, "together")["status"]["reservedFor"]
    assert {each["name"] for each in reserved} == {pod.name for pod in pods}
    assert ask(pods[0], "take 300") == "took 300"
    assert ask(pods[1], "take 300") != "took 300", "two contexts and 600 MiB are more than both may have"
    for pod in pods:
        pod.delete_and_wait()
    until(
        "it is let go of",
        lambda: (
            str(claim(stage, "together")["status"])
            if "allocation" in claim(stage, "together").get("status", {})
            else None
        ),
    )


def test_a_pod_without_room_is_told_so_in_figures_and_starts_when_there_is_some(stage: DraStage) -> None:
    holders = [stage.pod(f"holds-{number}", devices(request(900, "1Gi"))) for number in range(len(UUIDS))]
    for pod in holders:
        pod.wait_running()
    waits = stage.pod("waits", devices(request(200, "1Gi")))
    waits.wait_why("0/1 nodes are available: 1 Insufficient GPU share.")
    holders[0].delete_and_wait()
    waits.wait_running()


def test_a_pod_whose_scheduler_was_killed_before_it_was_bound_starts_with_what_it_was_given(
    stage: DraStage, scheduler: SchedulerProcess
) -> None:
    with without_right(stage.rig.cluster, SCHEDULER, "pods/binding"):
        pod = stage.pod("carried", devices(request(300, "1Gi")))
        until("its claim is allocated", lambda: _why_not_allocated(stage, "carried"))
        scheduler.kill()
    before = stage.claim_of(pod)["status"]["allocation"]
    assert not pod.refresh()["spec"].get("nodeName")
    scheduler.start()
    pod.wait_running()
    assert stage.claim_of(pod)["status"]["allocation"] == before


def test_nobody_else_allocates_our_devices_or_takes_an_allocation_back(stage: DraStage) -> None:
    """This holds even for an administrator with every right, and for clients that may write any status."""
    api = stage.rig.cluster.api
    stage.claim("forged", devices(request(300, "1Gi")))
    with pytest.raises(Refused) as refused:
        stage.allocate("forged", forged(UUIDS[0]))
    assert DENIED in refused.value.message
    stage.pod("honest", claim="forged").wait_running()
    with pytest.raises(Refused) as refused:
        api.patch(RESOURCE_CLAIMS.at(TEAM, "forged", "status"), {"status": {"allocation": None, "reservedFor": None}})
    assert "taken back by partage-scheduler and kube-controller-manager alone" in refused.value.message


def _why_not_allocated(stage: DraStage, owner: str) -> str | None:
    claims = stage.rig.cluster.api.list(RESOURCE_CLAIMS.at(TEAM))
    mine = [each for each in claims if each["metadata"]["name"].startswith(f"{owner}-")]
    return None if mine and "allocation" in mine[0].get("status", {}) else str(mine)
