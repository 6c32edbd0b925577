"""Pods that have ended hold nothing, whatever an older kubelet says; the API server is asked only where it matters."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar, cast

import pytest

from partage_advertiser.kubelet import Pods
from partage_base.kube import ApiServer, Unreachable
from partage_plugins.vocabulary.node import DeviceUse
from unit.advertiser.cards import A, B, card, inventory

T = TypeVar("T")


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
