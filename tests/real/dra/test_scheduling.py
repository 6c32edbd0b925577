"""How kube-scheduler hands out our devices by the driver's slices, classes and taints."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from partage_plugins.api import GPU, CardId
from partage_plugins.api.claim_devices import device_name
from partage_plugins.api.claims import DRIVER
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.codecs.quantity import parse_quantity
from rig.client.pods import Pod
from rig.client.resources import DEVICE_CLASSES, PRIORITY_CLASSES, RESOURCE_CLAIMS, Json
from rig.client.wait import until
from rig.identity.people import TEAM
from support.claim_objects import CLASS, devices, request
from support.crishim_stage import INVENTORY
from support.dra_stage import DraStage, part_class
from support.isolation_stage import IMAGE, SERVING, seen
from support.simgpu_stage import UUIDS

H100, L4 = map(CardId, UUIDS)
DEVICE_TAINT_RULES = "/apis/resource.k8s.io/v1/devicetaintrules"
NO_ROOM = "cannot allocate all claims"


def given(stage: DraStage, pod: Pod) -> list[tuple[str, Any]]:
    """Devices with their consumed share and bytes, which each Kubernetes writes in its own way."""
    results: list[Json] = stage.claim_of(pod)["status"]["allocation"]["devices"]["results"]
    return [
        (each["device"], {n: int(parse_quantity(q)) for n, q in each["consumedCapacity"].items()}) for each in results
    ]


def started(stage: DraStage, name: str, *requests: Json, **said: Any) -> Pod:
    return stage.pod(name, devices(*requests), **said).wait_running()


def capacity(**amounts: str) -> Json:
    return {"capacity": {"requests": amounts}}


def wait_without_room(stage: DraStage, name: str, *requests: Json, **said: Any) -> Pod:
    """Wait until it is unschedulable; kube-scheduler has one sentence for every reason."""
    pod = stage.pod(name, devices(*requests), **said)
    pod.wait_why(NO_ROOM)
    return pod


def test_shares_of_a_card_add_up_and_the_next_card_takes_what_is_more(stage: DraStage) -> None:
    pods = [started(stage, f"third-{number}", request(300, "1Gi")) for number in range(4)]
    cards = [given(stage, pod) for pod in pods]
    third = {"share": 300, "memory": 1 << 30}
    assert cards == [[(device_name(H100), third)]] * 3 + [[(device_name(L4), third)]]
    wait_without_room(stage, "too-much", request(800, "1Gi"))
    started(stage, "none", request(0, "1Gi"))


def test_memory_is_respected_as_shares_are(stage: DraStage) -> None:
    first = started(stage, "large", request(100, "60Gi"))
    assert given(stage, first)[0][0] == device_name(H100)
    wait_without_room(stage, "larger", request(100, "60Gi"))


def test_amounts_are_rounded_up_to_what_can_be_given_and_what_is_not_named_is_all(stage: DraStage) -> None:
    odd = started(stage, "odd", request(**capacity(share="50500m", memory="1500Ki")))
    assert given(stage, odd)[0][1] == {"share": 51, "memory": 2 << 20}
    whole = started(stage, "whole", request(None, None))
    assert given(stage, whole)[0][1]["share"] == 1000
    assert seen(whole)["total"] > 20 * 1024


@pytest.mark.extended("what kube-scheduler does by itself; the slices that it reads are tested by unit/dra")
@pytest.mark.parametrize("asked", [request(1100, "1Gi"), request(300, "100Gi"), request(**capacity(cores="1"))])
def test_whatever_does_not_fit_waits_with_the_same_words(stage: DraStage, asked: Json) -> None:
    wait_without_room(stage, "misfit", asked)


def test_two_requests_share_a_card_or_get_two_as_constraints_say_and_a_count_is_of_cards(stage: DraStage) -> None:
    both = (request(200, "1Gi", name="a"), request(200, "1Gi", name="b"))
    for kind, cards in (("matchAttribute", 1), ("distinctAttribute", 2)):
        spec = devices(*both)
        spec["devices"]["constraints"] = [{kind: "gpu.partage.dev/uuid"}]
        pod = stage.pod(kind.lower(), spec).wait_running()
        assert len({device for device, _ in given(stage, pod)}) == cards
    counted = started(stage, "counted", request(100, "1Gi", count=2))
    assert len({device for device, _ in given(stage, counted)}) == 2


@pytest.mark.extended("what kube-scheduler does by itself")
def test_requests_of_which_nothing_is_said_are_given_the_first_card_with_room(stage: DraStage) -> None:
    pod = started(stage, "both", request(200, "1Gi", name="a"), request(200, "1Gi", name="b"))
    assert [device for device, _ in given(stage, pod)] == [device_name(H100)] * 2


@pytest.mark.extended("what kube-scheduler does by itself; sums are checked on the node")
def test_what_somebody_else_allocated_counts(stage: DraStage) -> None:
    first = started(stage, "first", request(500, "1Gi"))
    stage.claim("theirs", devices(request(500, "1Gi")))
    stage.allocate("theirs", stage.claim_of(first)["status"]["allocation"])
    assert given(stage, started(stage, "next", request(300, "1Gi")))[0][0] == device_name(L4)


@pytest.mark.extended("what kube-scheduler does by itself; what its container has is tested beside")
def test_an_administrator_s_claim_is_of_every_card_and_takes_no_room(stage: DraStage) -> None:
    with stage.administrated():
        watch = started(stage, "watch", request(None, None, adminAccess=True, allocationMode="All"))
        assert [device for device, _ in given(stage, watch)] == [device_name(H100), device_name(L4)]
        for place in range(len(UUIDS)):
            started(stage, f"whole-{place}", request(None, None))
        watch.delete_and_wait()


@pytest.mark.extended("what kube-scheduler does by itself")
def test_cards_of_one_request_are_never_one_card(stage: DraStage) -> None:
    spec = devices(request(100, "1Gi", count=2))
    spec["devices"]["constraints"] = [{"matchAttribute": "gpu.partage.dev/uuid"}]
    stage.pod("both-on-one", spec).wait_why(NO_ROOM)


@pytest.mark.extended("what kube-scheduler does by itself")
def test_a_higher_priority_sends_nobody_away(stage: DraStage) -> None:
    holders = [started(stage, f"holds-{number}", request(900, "1Gi")) for number in range(len(UUIDS))]
    high = {"metadata": {"name": "high"}, "value": 1000}
    stage.rig.cluster.api.create(PRIORITY_CLASSES.at(), high)
    try:
        waits = wait_without_room(stage, "waits", request(800, "1Gi"), spec={"priorityClassName": "high"})
        assert [pod.refresh()["status"]["phase"] for pod in holders] == ["Running"] * len(holders)
        holders[0].delete_and_wait()
        waits.wait_running()
    finally:
        stage.rig.cluster.api.delete(PRIORITY_CLASSES.at(name="high"))


@pytest.mark.extended("what Kubernetes does by itself")
def test_a_resource_of_the_class_counts_whole_cards(stage: DraStage) -> None:
    """The class therefore has no resource in milli; fixed parts are for pods without claims."""

    def asking(name: str, count: str) -> Pod:
        limits = {f"deviceclass.resource.kubernetes.io/{CLASS}": count}
        return stage.create_pod(name, image=IMAGE, command=SERVING, limits=limits)

    whole = asking("whole", "1").wait_running()
    assert seen(whole)["total"] > 20 * 1024
    asking("milli", "500").wait_why("exceeds the claim limit")


def test_the_claim_of_a_pod_that_has_ended_goes_at_once(stage: DraStage) -> None:
    pod = stage.pod("ends", command=["/usr/bin/memory"])
    pod.wait("it has ended", lambda now: None if now["status"]["phase"] in {"Succeeded", "Failed"} else "it runs")
    until("no claim is left", lambda: None if not stage.rig.cluster.api.list(RESOURCE_CLAIMS.at(TEAM)) else "one is")
    until("nor anything on the node", lambda: None if not stage.specs() else str(stage.specs()))


# ---- Health ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def healthy(stage: DraStage) -> Iterator[DraStage]:
    yield stage
    say(stage)
    until("no card is tainted", lambda: None if not taints(stage) else str(taints(stage)))


def say(stage: DraStage, **health: str) -> None:
    """Write the first card's health as the advertiser would."""
    path = stage.machine.path(INVENTORY)
    known = decode_inventory(path.read_text(), (GPU,))
    part = known.part(GPU)
    assert part is not None
    first, *others = part.cards
    changed = replace(part, cards=(replace(first, **{"health": "ok", "cause": None, **health}), *others))
    stage.machine.write(INVENTORY, encode_inventory(replace(known, kinds={GPU.name: changed})).decode())


def test_a_degraded_card_takes_no_new_pods_and_keeps_those_that_it_has(healthy: DraStage) -> None:
    there = started(healthy, "there", request(300, "1Gi"))
    say(healthy, health="degraded: too hot", cause="fault")
    until("the slice says so", lambda: None if taints(healthy) == ["NoSchedule"] else str(taints(healthy)))
    assert given(healthy, started(healthy, "elsewhere", request(300, "1Gi")))[0][0] == device_name(L4)
    there.wait("its status says so", lambda pod: None if "Unhealthy" in str(pod["status"]) else "it does not")
    assert there.phase == "Running"


def test_a_card_that_is_lost_ends_the_pods_that_have_it(healthy: DraStage) -> None:
    there = started(healthy, "there", request(300, "1Gi"))
    say(healthy, health="lost", cause="fell-off")
    there.wait_gone()


@pytest.mark.extended("what Kubernetes does by itself; that claims end with their pods is tested beside")
def test_an_administrator_s_taint_ends_the_pods_of_a_card_and_nothing_of_them_is_left(stage: DraStage) -> None:
    there = started(stage, "there", request(300, "1Gi"))
    assert given(stage, there)[0][0] == device_name(H100)
    uid = stage.claim_of(there)["metadata"]["uid"]
    taint = {"key": "example.com/repair", "effect": "NoExecute"}
    spec = {"deviceSelector": {"driver": DRIVER, "device": device_name(H100)}, "taint": taint}
    stage.rig.cluster.api.create(DEVICE_TAINT_RULES, {"metadata": {"name": "repair"}, "spec": spec})
    try:
        there.wait_gone()
        stage.wait_nothing_left(uid)
        assert given(stage, started(stage, "elsewhere", request(300, "1Gi")))[0][0] == device_name(L4)
    finally:
        stage.rig.cluster.api.delete(f"{DEVICE_TAINT_RULES}/repair")


def taints(stage: DraStage) -> list[str]:
    return [taint["effect"] for device in stage.devices() for taint in device.get("taints", ())]


# ---- Fixed parts -----------------------------------------------------------------------------------------------------


@pytest.fixture
def parted(stage: DraStage) -> Iterator[DraStage]:
    """The second card is handed out in halves and quarters."""
    classes = [part_class(2), part_class(4)]
    for each in classes:
        stage.rig.cluster.api.create(DEVICE_CLASSES.at(), each)
    stage.replace_driver("--parts", f"{L4}=2+4")
    until("the parts are published", lambda: None if len(parts(stage)) == 6 else str(parts(stage)))
    yield stage
    stage.clear()
    stage.replace_driver()
    until("the whole card is published", lambda: None if not parts(stage) else "not yet")
    for each in classes:
        stage.rig.cluster.api.delete(DEVICE_CLASSES.at(name=each["metadata"]["name"]))


def parts(stage: DraStage) -> list[str]:
    return [device["name"] for device in stage.devices() if "consumesCounters" in device]


def test_pods_without_claims_get_fixed_parts_by_a_resource_and_never_more_than_the_card(parted: DraStage) -> None:
    def asking(name: str, of: int) -> Pod:
        limits = {f"gpu.partage.dev/1of{of}": "1"}
        return parted.create_pod(name, image=IMAGE, command=SERVING, limits=limits)

    half, *quarters = asking("half", 2), asking("quarter-a", 4), asking("quarter-b", 4)
    for pod in (half, *quarters):
        pod.wait_running()
    assert seen(half)["total"] == 11 * 1024
    assert {seen(pod)["total"] for pod in quarters} == {22 * 1024 // 4}
    more = asking("quarter-c", 4)
    more.wait("nobody places it", lambda _: None if more.condition("PodScheduled").get("status") == "False" else "?")
    half.delete_and_wait()
    more.wait_running()
