"""A whole scheduler writes the allocations of claims before it binds their pods, for any answers of the API server."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from partage_plugins.api import Ready
from partage_plugins.api.keys import ALLOCATION
from partage_scheduler.claims import FINALIZER
from support.claim_objects import device_class, devices, request
from support.fake_api import CutShort, Drop, FakeApi, Hang, Refuse
from support.gpu_fleet import card
from support.kube import until
from support.objects import NAMESPACE, of_cards, pod_body
from support.scheduler_stage import NODES, add_node, scheduler, settings_below, unbound
from support.scheduling import PODS, stands

CLASSES: Final = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS: Final = f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims"


@pytest.fixture
def claimed(api: FakeApi) -> FakeApi:
    """An API server with a device class, and a node with one card for claims."""
    api.objects.create(CLASSES, device_class(900))
    add_card(api, "n1")
    return api


def add_card(api: FakeApi, node: str) -> None:
    """A node with one card for claims."""
    add_node(api, node, of_cards([card(f"GPU-{node}", pool="dra")], ready=Ready(broker=True)))


def add_claim(api: FakeApi, name: str, share: str = "300", limit_milli: int = 900) -> dict[str, Any]:
    spec = devices(request(share), limit_milli=limit_milli)
    return api.objects.create(CLAIMS, {"metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec})


def add_pod(api: FakeApi, name: str, claim: str, **spec: Any) -> None:
    api.objects.create(PODS, pod_body(name, resourceClaims=[{"name": "gpu", "resourceClaimName": claim}], **spec))


def claim_of(api: FakeApi, name: str) -> dict[str, Any]:
    return api.objects.get(f"{CLAIMS}/{name}")


async def test_a_claim_is_allocated_and_reserved_before_its_pod_is_bound(claimed: FakeApi, tmp_path: Path) -> None:
    add_claim(claimed, "c", limit_milli=500)
    add_pod(claimed, "p", "c")
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        await until(lambda: not unbound(claimed))
    found = claim_of(claimed, "c")
    allocation = found["status"]["allocation"]
    (result,) = allocation["devices"]["results"]
    assert {key: value for key, value in result.items() if key != "shareID"} == {
        "request": "gpu",
        "driver": "gpu.partage.dev",
        "pool": "n1",
        "device": "gpu-n1",
        "consumedCapacity": {"share": "300", "memory": "1Gi"},
    }
    assert [
        (each["source"], each["opaque"]["parameters"]["limitMilli"]) for each in allocation["devices"]["config"]
    ] == [
        ("FromClass", 900),
        ("FromClaim", 500),
    ]
    assert found["metadata"]["finalizers"] == [FINALIZER]
    assert [each["name"] for each in found["status"]["reservedFor"]] == ["p"]
    assert ALLOCATION not in claimed.objects.get(f"{PODS}/p")["metadata"].get("annotations", {})
    order = [change.path for change in claimed.objects.history if change.path in {f"{CLAIMS}/c", f"{PODS}/p"}]
    assert order == [f"{CLAIMS}/c", f"{PODS}/p", f"{CLAIMS}/c", f"{CLAIMS}/c", f"{PODS}/p"]


async def test_pods_that_share_a_claim_are_bound_to_one_node_and_both_are_named(
    claimed: FakeApi, tmp_path: Path
) -> None:
    add_card(claimed, "n2")
    add_claim(claimed, "c")
    for name in ("p", "q"):
        add_pod(claimed, name, "c")
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        await until(lambda: not unbound(claimed))
    assert {stands(claimed, name).node for name in ("p", "q")} in ({"n1"}, {"n2"})
    assert {each["name"] for each in claim_of(claimed, "c")["status"]["reservedFor"]} == {"p", "q"}


async def test_a_scheduler_that_died_before_it_bound_a_pod_is_carried_on(claimed: FakeApi, tmp_path: Path) -> None:
    """Its claim is already allocated, on the node to which another pod would not be sent."""
    add_card(claimed, "n2")
    add_claim(claimed, "c")
    add_pod(claimed, "p", "c")
    claimed.expect(Hang(), method="POST", under=f"{PODS}/p")
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        await until(lambda: "reservedFor" in claim_of(claimed, "c").get("status", {}))
    allocation = claim_of(claimed, "c")["status"]["allocation"]
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        await until(lambda: not unbound(claimed))
    assert claim_of(claimed, "c")["status"]["allocation"] == allocation
    assert stands(claimed, "p").node == allocation["devices"]["results"][0]["pool"]


async def test_a_claim_is_let_go_of_where_its_pod_fits_no_more(claimed: FakeApi, tmp_path: Path) -> None:
    """Its node became unschedulable in the meantime; the pod goes where there is room."""
    add_claim(claimed, "c")
    add_pod(claimed, "p", "c")
    claimed.expect(Hang(), method="POST", under=f"{PODS}/p")
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        await until(lambda: "reservedFor" in claim_of(claimed, "c").get("status", {}))
    claimed.objects.patch(f"{NODES}/n1", {"spec": {"unschedulable": True}})
    add_card(claimed, "n2")
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        await until(lambda: stands(claimed, "p").node == "n2")
    assert [each["pool"] for each in claim_of(claimed, "c")["status"]["allocation"]["devices"]["results"]] == ["n2"]


async def test_what_there_is_no_room_for_waits_with_figures_until_a_claim_ends(
    claimed: FakeApi, tmp_path: Path
) -> None:
    for name in ("c", "d"):
        add_claim(claimed, name, share="450")
    add_claim(claimed, "e", share="200")
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        for name, claim in (("p", "c"), ("q", "d")):
            add_pod(claimed, name, claim)
        await until(lambda: not unbound(claimed))
        add_pod(claimed, "r", "e")
        await until(lambda: stands(claimed, "r").status.conditions)
        message = stands(claimed, "r").status.conditions[0].message
        assert message.startswith("0/1 nodes are available: 1 Insufficient GPU share.")
        claimed.objects.delete(f"{PODS}/p")
        claimed.objects.delete(f"{CLAIMS}/c")
        await until(lambda: stands(claimed, "r").node == "n1")


@pytest.mark.parametrize(
    "fault",
    [
        Refuse(409, "Conflict"),
        Refuse(500),
        Refuse(500, after_success=True),
        Drop(),
        Drop(after_success=True),
        CutShort(),
    ],
)
async def test_a_write_of_which_it_is_not_known_whether_it_was_done_is_done_once(
    claimed: FakeApi, tmp_path: Path, fault: Any
) -> None:
    add_claim(claimed, "c")
    add_pod(claimed, "p", "c")
    claimed.expect(fault, method="PATCH", under=CLAIMS, times=2)
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False), deadline_s=0.3):
        await until(lambda: not unbound(claimed))
    allocations = [
        change.object["status"]["allocation"]
        for change in claimed.objects.history
        if change.path == f"{CLAIMS}/c" and "allocation" in change.object.get("status", {})
    ]
    assert len({each["devices"]["results"][0]["shareID"] for each in allocations}) == 1


async def test_a_claim_that_may_not_be_written_frees_what_it_was_to_have(claimed: FakeApi, tmp_path: Path) -> None:
    add_claim(claimed, "c", share="400")
    add_claim(claimed, "d", share="700")
    claimed.expect(Refuse(403, "Forbidden", "not yours"), method="PATCH", under=f"{CLAIMS}/c", times=999)
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        add_pod(claimed, "p", "c")
        await until(lambda: claimed.count("PATCH", f"{CLAIMS}/c") > 0)
        claimed.objects.delete(f"{PODS}/p")
        add_pod(claimed, "q", "d")
        await until(lambda: stands(claimed, "q").node == "n1")


async def test_a_pod_of_a_higher_priority_has_those_leave_whose_claims_it_needs(
    claimed: FakeApi, tmp_path: Path
) -> None:
    add_claim(claimed, "c", share="900")
    add_claim(claimed, "d", share="900")
    async with scheduler(claimed, settings_below(tmp_path, claims=True, elect=False)):
        add_pod(claimed, "low", "c")
        await until(lambda: not unbound(claimed))
        add_pod(claimed, "high", "d", priority=1000)
        await until(lambda: claimed.count("DELETE", f"{PODS}/low") > 0)
        claimed.objects.delete(f"{CLAIMS}/c")
        await until(lambda: stands(claimed, "high").node == "n1")
    assert claimed.count("DELETE") == 1
