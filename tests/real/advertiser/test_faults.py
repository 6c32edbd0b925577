"""What goes wrong with cards is told in the cluster, on the node and to people; what is right again is told, too."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from real.advertiser.auditing import Audit
from support.advertiser_stage import CHILD, AdvertiserStage
from support.simgpu_stage import UUIDS

pytestmark = pytest.mark.timeout(300)


@dataclass(frozen=True)
class Fault:
    """Something that happens to card 0 or to the driver, and how it is told."""

    injected: str
    healths: tuple[str, str]
    reason: str
    words: str
    mended: tuple[str, ...] = ()


ALL_LOST = ("lost", "lost")
ONE_LOST = ("lost", "ok")
RESET = ("lose 0", "restore 0")
FAULTS = {
    "a double bit error": Fault("xid 0 48", ("degraded: XID 48", "ok"), "CardDegraded", "double bit ECC error", RESET),
    "an error that passes": Fault("xid 0 94", ("degraded: XID 94", "ok"), "CardDegraded", "takes no new pods"),
    "an error of memory": Fault(
        "ecc 0 uncorrected 1", ("degraded: an error of memory", "ok"), "CardDegraded", "that ECC could not correct"
    ),
    "a card off the bus": Fault("lose 0", ONE_LOST, "CardLost", "Pods that have it can't use it", ("restore 0",)),
    "a driver that hangs": Fault("nvml hang", ALL_LOST, "CardLost", "does not answer", ("nvml resume",)),
    "a driver that is slow": Fault("nvml delay 3000", ALL_LOST, "CardLost", "does not answer", ("nvml delay 0",)),
    "a driver that fails": Fault("nvml answer 999", ALL_LOST, "CardLost", "is lost: ", ("nvml answer 0",)),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_told_everywhere_and_so_is_its_end(stage: AdvertiserStage, name: str) -> None:
    fault = FAULTS[name]
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    stage.tell_driver(fault.injected)
    stage.wait_healths(*fault.healths)
    stage.wait_event(fault.reason, fault.words)
    for command in fault.mended:
        stage.tell_driver(command)
        if command.startswith("lose"):
            stage.wait_healths(*ONE_LOST)
    stage.wait_healths("ok", "ok")
    stage.wait_event("CardRecovered", "works again and takes new pods")
    assert stage.told_text() == stage.written_text()


def test_the_fault_of_a_program_is_none_of_the_cards(stage: AdvertiserStage) -> None:
    stage.start()
    stage.wait_healths("ok", "ok")
    stage.tell_driver("xid 0 31")
    stage.tell_driver("xid 1 94")
    stage.wait_healths("ok", "degraded: XID 94")
    stage.wait_event("CardDegraded", UUIDS[1])
    assert not [each for each in stage.events() if UUIDS[0] in each["message"]]


def test_a_card_that_came_back_is_watched_before_it_takes_pods(stage: AdvertiserStage) -> None:
    stage.start(env={"PARTAGE_GPU_QUIET_S": "3600"})
    stage.wait_healths("ok", "ok")
    stage.tell_driver("lose 0")
    stage.wait_healths("lost", "ok")
    stage.tell_driver("restore 0")
    stage.wait_healths("degraded: came back, being watched", "ok")


def test_a_driver_that_is_loaded_anew_costs_no_card_for_long(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    (before,) = stage.processes(CHILD)
    stage.tell_driver("reload")
    stage.wait("another process asks the driver", lambda: None if not before.exists() else f"{before} lives")
    stage.wait_healths("ok", "ok")
    stage.wait("one process asks it", lambda: None if len(stage.processes(CHILD)) == 1 else "not one")


def test_people_see_what_happened_in_kubectl_describe_node(stage: AdvertiserStage) -> None:
    stage.start()
    stage.wait_healths("ok", "ok")
    stage.tell_driver("lose 1")
    stage.wait_event("CardLost", UUIDS[1])
    (line,) = [each for each in _described(stage).splitlines() if "CardLost" in each]
    assert line.split()[0] == "Warning"
    assert "partage-advertiser" in line
    assert f"Card 1 (NVIDIA L4, {UUIDS[1]}) is lost" in line


def test_a_fault_that_goes_on_is_told_once(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    stage.tell_driver("lose 0")
    stage.wait_event("CardLost", UUIDS[0])
    looks = 'partage_advertiser_looks_total{outcome="done"}'
    stage.wait_more(looks, 4)
    assert [each["reason"] for each in stage.events()] == ["CardLost"]


def _described(stage: AdvertiserStage) -> str:
    return stage.rig.cluster.kubectl.run("describe", "node", stage.name)


@pytest.mark.parametrize("milliseconds", [50, 300])
def test_a_driver_that_takes_its_time_does_not_make_the_inventory_flap(
    stage: AdvertiserStage, audit: Audit, milliseconds: int
) -> None:
    looks = 'partage_advertiser_looks_total{outcome="done"}'
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    stage.tell_driver(f"nvml delay {milliseconds}")
    stage.wait_more(looks, 10)
    assert audit.writes()["patch", "nodes"] <= 2
