"""Facts from the driver are published identically in the cluster and on the node, and are written once."""

from __future__ import annotations

from partage_base.findings import FINDINGS_FOLDER, Findings, Problem, encode_findings
from partage_plugins.api import GPU
from partage_plugins.api.keys import INVENTORY as ANNOTATION
from partage_plugins.api.names import ContainerName
from partage_plugins.api.places import INVENTORY_FILE
from rig.client.resources import Json
from support import broker
from support.advertiser_stage import CHILD, MODULE, AdvertiserStage
from support.audit import Audit
from support.simgpu_stage import UUIDS

LOOKS = 'partage_advertiser_looks_total{outcome="done"}'
BEATS = 'partage_advertiser_heartbeats_total{outcome="done"}'
QUICKLY = ("--look-every-s", "1", "--heartbeat-s", "1")


def managed_by_us(node: Json) -> list[Json]:
    """The managedFields entries (manager and time) that own the annotation."""
    key = f"f:{ANNOTATION}"
    fields = node["metadata"]["managedFields"]
    return [each for each in fields if key in each["fieldsV1"].get("f:metadata", {}).get("f:annotations", {})]


def test_what_the_driver_knows_is_told_once_and_then_only_the_lease_is_renewed(
    stage: AdvertiserStage, audit: Audit
) -> None:
    stage.start(*QUICKLY)
    stage.wait_healths("ok", "ok")
    stage.wait_figure(LOOKS, 5)
    stage.wait_figure(BEATS, 4)
    writes = audit.writes()
    assert writes.pop(("update", "leases")) >= 3
    assert writes == {("patch", "nodes"): 1, ("create", "leases"): 1}
    assert {each.verb for each in audit.asked() if each.resource == "nodes"} <= {"patch", "list", "watch"}
    assert {each.status for each in audit.asked()} <= {0, 200, 201, 404}
    assert stage.told_text() == stage.written_text()
    told = stage.told()
    part = told.part(GPU) if told else None
    assert part is not None
    assert (part.driver, part.cuda) == ("580.95.05", "13.0")
    first, second = part.cards
    assert ((first.id, second.id), (first.pool, second.pool)) == (UUIDS, ("shared", "shared"))
    assert (first.model, first.compute_capability) == ("NVIDIA H100 80GB HBM3", "9.0")
    assert (first.pci, first.numa_node, first.memory_bytes) == ("0000:18:00.0", 0, (81559 - 450) << 20)
    node = stage.rig.cluster.nodes.get(stage.name)
    assert not [key for key in node["status"]["capacity"] if "partage" in key]
    lease = stage.lease()
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == (stage.name, 4)
    (owner,) = lease["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"]) == ("Node", node["metadata"]["uid"])


def test_what_was_told_stays_at_the_end_and_a_second_start_writes_nothing_new(
    stage: AdvertiserStage, audit: Audit
) -> None:
    first = stage.start()
    stage.wait_figure(BEATS, 1)
    told, before = stage.told_text(), managed_by_us(stage.rig.cluster.nodes.get(stage.name))
    file = stage.machine.path(f"/{INVENTORY_FILE}").stat()
    first.stop()
    left = [*stage.processes(MODULE), *stage.processes(CHILD)]
    assert (stage.told_text(), stage.written_text(), left) == (told, told, [])
    audit.begin()
    stage.start(*QUICKLY)
    stage.wait_figure(LOOKS, 3)
    stage.wait_figure(BEATS, 2)
    assert len(before) == 1
    assert managed_by_us(stage.rig.cluster.nodes.get(stage.name)) == before
    assert stage.machine.path(f"/{INVENTORY_FILE}").stat().st_ino == file.st_ino
    assert set(audit.writes()) == {("update", "leases")}


def test_what_a_broker_finds_wrong_is_an_event_on_the_node(stage: AdvertiserStage) -> None:
    stage.start()
    found = Problem("CoveredMounts", "what partage mounted at /run/partage is covered", stops=True)
    findings = Findings(subject="a" * 32, pod=broker.pod(), container=ContainerName("main"), found=(found,))
    stage.machine.write(f"/{FINDINGS_FOLDER}/{'a' * 32}.json", encode_findings(findings).decode())
    stage.wait_event("CoveredMounts", "In container main of pod team-a/train-0 what partage mounted at /run/partage is")
