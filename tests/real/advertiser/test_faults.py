"""Card faults are reported in the cluster, on the node and to people, and so is recovery."""

from __future__ import annotations

from support.advertiser_stage import AdvertiserStage
from support.simgpu_stage import UUIDS

LOOKS = 'partage_advertiser_looks_total{outcome="done"}'


def test_a_fault_is_told_everywhere_and_so_is_its_end(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    stage.tell_driver("xid 0 31")  # a fault of a program is not a fault of its card
    stage.tell_driver("xid 1 94")
    stage.wait_healths("ok", "degraded: XID 94")
    stage.wait_event("CardDegraded", UUIDS[1])
    assert not [each for each in stage.events() if UUIDS[0] in each["message"]]
    stage.tell_driver("lose 0")
    stage.wait_healths("lost", "ok")
    stage.wait_more(LOOKS, 2)
    lost = [each for each in stage.events() if each["reason"] == "CardLost"]
    assert len(lost) == 1, "what goes on is told once"
    assert "Pods that have it can't use it" in lost[0]["message"]
    described = stage.rig.cluster.kubectl.run("describe", "node", stage.name)
    (line,) = [each for each in described.splitlines() if "CardLost" in each]
    assert line.split()[0] == "Warning"
    assert f"Card 0 (NVIDIA H100 80GB HBM3, {UUIDS[0]}) is lost" in line
    stage.tell_driver("restore 0")
    stage.wait_healths("ok", "ok")
    stage.wait_event("CardRecovered", "works again and takes new pods")
    stage.tell_driver("nvml hang")
    stage.wait_healths("lost", "lost")
    stage.wait_event("CardLost", "does not answer")
    stage.tell_driver("nvml resume")
    stage.wait_healths("ok", "ok")
    assert stage.told_text() == stage.written_text()
