"""What the driver knows stands in the cluster and on the node, in the same words, and is written once."""

from __future__ import annotations

import pytest

from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.keys import INVENTORY as ANNOTATION
from partage_plugins.vocabulary.places import INVENTORY_FILE
from real.advertiser.auditing import Audit
from rig.client.resources import Json
from support.advertiser_stage import AdvertiserStage
from support.simgpu_stage import UUIDS

pytestmark = pytest.mark.timeout(300)

LOOKS = 'partage_advertiser_looks_total{outcome="done"}'
BEATS = 'partage_advertiser_heartbeats_total{outcome="done"}'
QUICKLY = ("--look-every-s", "1", "--heartbeat-s", "1")


def managed_by_us(node: Json) -> list[Json]:
    """When and by whom the annotation was written, as the API server remembers."""
    key = f"f:{ANNOTATION}"
    fields = node["metadata"]["managedFields"]
    return [each for each in fields if key in each["fieldsV1"].get("f:metadata", {}).get("f:annotations", {})]


def test_what_the_driver_knows_is_told_in_the_cluster_and_on_the_node_alike(stage: AdvertiserStage) -> None:
    stage.start()
    stage.wait_healths("ok", "ok")
    assert stage.told_text() == stage.written_text()
    told = stage.told()
    part = told.part(GPU) if told else None
    assert part is not None
    assert (part.driver, part.cuda) == ("580.95.05", "13.0")
    first, second = part.cards
    assert (first.id, second.id) == UUIDS
    assert (first.model, first.compute_capability, first.pci, first.numa_node) == (
        "NVIDIA H100 80GB HBM3",
        "9.0",
        "0000:18:00.0",
        0,
    )
    assert (first.pool, second.pool) == ("shared", "shared")
    assert first.memory_bytes == (81559 - 450) << 20


def test_the_extended_resources_are_not_put_into_the_nodes_capacity(stage: AdvertiserStage) -> None:
    stage.start()
    stage.wait_healths("ok", "ok")
    assert not [key for key in stage.rig.cluster.nodes.get(stage.name)["status"]["capacity"] if "partage" in key]


def test_a_quiet_node_costs_one_patch_and_then_nothing_but_the_lease(stage: AdvertiserStage, audit: Audit) -> None:
    stage.start(*QUICKLY)
    stage.wait_figure(LOOKS, 12)
    stage.wait_figure(BEATS, 8)
    writes = audit.writes()
    assert writes.pop(("update", "leases")) >= 7
    assert writes == {("patch", "nodes"): 1, ("create", "leases"): 1}
    assert {each.verb for each in audit.asked() if each.resource == "nodes"} <= {"patch", "list", "watch"}
    assert {each.status for each in audit.asked()} <= {0, 200, 201, 404}


def test_a_second_start_writes_nothing_new(stage: AdvertiserStage, audit: Audit) -> None:
    first = stage.start()
    stage.wait_figure(BEATS, 1)
    before = managed_by_us(stage.rig.cluster.nodes.get(stage.name))
    file = stage.machine.path(f"/{INVENTORY_FILE}").stat()
    first.stop()
    audit.begin()
    stage.start(*QUICKLY)
    stage.wait_figure(LOOKS, 4)
    stage.wait_figure(BEATS, 2)
    assert len(before) == 1
    assert managed_by_us(stage.rig.cluster.nodes.get(stage.name)) == before
    assert stage.machine.path(f"/{INVENTORY_FILE}").stat().st_ino == file.st_ino
    assert set(audit.writes()) == {("update", "leases")}


def test_the_heartbeat_belongs_to_the_node_object(stage: AdvertiserStage) -> None:
    stage.start()
    stage.wait_figure(BEATS, 1)
    lease = stage.lease()
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == (stage.name, 40)
    (owner,) = lease["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Node", stage.rig.cluster.nodes.get(stage.name)["metadata"]["uid"])
