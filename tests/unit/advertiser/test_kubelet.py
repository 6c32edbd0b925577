"""Devices given by kubelet: what it reports, what only its record shows, and which pods have ended."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest

from partage_advertiser.kubelet import Kubelet, Pods
from partage_base.cri import CHECKPOINT, PodResources
from partage_base.cri.device_uses import LOGS
from partage_base.kube import ApiServer, Unreachable
from partage_plugins.api.node import DeviceUse
from support.fake_runtime import FakePodResources
from unit.advertiser.cards import A, B, card, inventory

T = TypeVar("T")
GPU = "nvidia.com/gpu"


def _gave(pod: str, *devices: str) -> FakePodResources:
    resources = FakePodResources()
    resources.given["default", pod, "main"] = devices
    return resources


def _recorded(root: Path, *entries: dict[str, Any]) -> None:
    path = root / CHECKPOINT
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps({"Data": {"PodDeviceEntries": entries}, "Checksum": 0}))


def _entry(uid: str, *devices: str) -> dict[str, Any]:
    return {"PodUID": uid, "ContainerName": "init", "ResourceName": GPU, "DeviceIDs": {"0": list(devices)}}


def _with_logs(root: Path, *names: str) -> None:
    for name in names:
        (root / LOGS / name).mkdir(parents=True)


def _in_use(resources: PodResources, root: Path) -> list[DeviceUse] | None:
    return asyncio.run(Kubelet(resources, root).in_use())


def test_what_kubelet_tells_is_in_use(tmp_path: Path) -> None:
    assert _in_use(_gave("p", "GPU-1::0", "GPU-2"), tmp_path) == [
        DeviceUse(resource=GPU, device="GPU-1::0", namespace="default", pod="p", container="main"),
        DeviceUse(resource=GPU, device="GPU-2", namespace="default", pod="p", container="main"),
    ]


def test_an_init_container_shows_in_the_record_alone(tmp_path: Path) -> None:
    _recorded(tmp_path, _entry("u1", "GPU-1"))
    _with_logs(tmp_path, "default_p_u1")
    assert _in_use(_gave("p"), tmp_path) == [
        DeviceUse(resource=GPU, device="GPU-1", namespace="default", pod="p", container="init")
    ]


def test_a_pod_that_has_ended_holds_nothing_though_it_is_recorded(tmp_path: Path) -> None:
    _recorded(tmp_path, _entry("u1", "GPU-1"))
    _with_logs(tmp_path, "default_p_u1")
    assert _in_use(_gave("another"), tmp_path) == []


def test_a_pod_that_kubelet_has_forgotten_holds_nothing(tmp_path: Path) -> None:
    _recorded(tmp_path, _entry("u1", "GPU-1"), _entry("../../..", "GPU-2"))
    assert _in_use(_gave("p"), tmp_path) == []


def test_what_both_name_is_told_once_with_the_pods_name(tmp_path: Path) -> None:
    _recorded(tmp_path, _entry("u1", "GPU-1"))
    _with_logs(tmp_path, "default_p_u1", "nothing_of_kubelets", "x")
    (use,) = _in_use(_gave("p", "GPU-1"), tmp_path) or []
    assert use.pod == "p"


def test_a_kubelet_that_is_away_is_not_taken_for_one_that_gave_nothing(tmp_path: Path) -> None:
    resources = FakePodResources()
    resources.away = True
    assert _in_use(resources, tmp_path) is None


class Server:
    """An API server that knows the phase of one pod."""

    def __init__(self, phase: str | None) -> None:
        self._phase = phase
        self.asked: list[str] = []

    async def get(self, path: str, type_: type[T]) -> T:
        self.asked.append(path)
        if self._phase is None:
            raise Unreachable(f"GET {path}", "it is away", may_be_done=False)
        return cast("T", _pod(type_, self._phase))


def _pod(type_: Any, phase: str) -> object:
    return type_(status=type(type_().status)(phase=phase))


def _use(device: str = A, namespace: str = "default") -> DeviceUse:
    return DeviceUse(resource="nvidia.com/gpu", device=device, namespace=namespace, pod="p", container="main")


def _left(server: Server, *uses: DeviceUse, times: int = 1, now: list[float] | None = None) -> list[DeviceUse]:
    clock = now or [0.0]
    pods = Pods(cast("ApiServer", server), lambda: clock[0])
    shared, kubelets = card(A), card(B, pool="kubelet")

    async def asked() -> list[DeviceUse]:
        left: list[DeviceUse] = []
        for _ in range(times):
            left = await pods.without_ended(uses, inventory(shared, kubelets))
        return left

    return asyncio.run(asked())


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_holds_no_shared_card(phase: str) -> None:
    assert not _left(Server(phase), _use(f"{A}::3"))


@pytest.mark.parametrize("phase", ["Running", "Pending", "Unknown", "", None])
def test_any_other_pod_holds_it_also_while_nobody_can_be_asked(phase: str | None) -> None:
    assert _left(Server(phase), _use()) == [_use()]


def test_nobody_is_asked_about_cards_that_kubelet_hands_out() -> None:
    server = Server("Succeeded")
    assert _left(server, _use(B)) == [_use(B)]
    assert not server.asked


def test_a_pod_is_asked_about_once_in_a_while() -> None:
    server = Server("Running")
    _left(server, _use(), times=5)
    assert server.asked == ["/api/v1/namespaces/default/pods/p"]


def test_without_an_inventory_nobody_is_asked() -> None:
    server = Server("Succeeded")
    pods = Pods(cast("ApiServer", server))
    assert asyncio.run(pods.without_ended([_use()], None)) == [_use()]
    assert not server.asked
