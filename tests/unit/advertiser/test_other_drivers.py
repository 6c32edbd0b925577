"""Devices offered here by other DRA drivers are known as long as their slices exist, by all names of a card."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from partage_advertiser.other_drivers import DriverSlice, OtherDrivers, offered_by
from partage_base.kube import ApiServer, resource_slices_path
from partage_plugins.api.claims import DRIVER
from support.fake_api import FakeApi
from support.kube import access_to, until

NVIDIA = "gpu.nvidia.com"
UUID = {"uuid": {"string": "GPU-1"}}
PCI = {"resource.kubernetes.io/pciBusID": {"string": "0000:18:00.0"}}


def a_slice(*devices: dict[str, Any], driver: str = NVIDIA, node: str = "n1") -> dict[str, Any]:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": list(devices)}
    return {"metadata": {"name": f"{node}-{driver}"}, "spec": spec}


def device(attributes: dict[str, dict[str, str]]) -> dict[str, Any]:
    return {"name": "gpu-0", "attributes": {"index": {"int": 0}, **attributes}}


@pytest.mark.parametrize(
    ("said", "names"),
    [
        (device({**UUID, **PCI}), ["GPU-1"]),
        (device({f"{NVIDIA}/uuid": {"string": "MIG-1"}}), ["MIG-1"]),
        (device(PCI), ["0000:18:00.0", "gpu-0"]),
        (device({}), ["gpu-0"]),
        ({"name": "gpu-7"}, ["gpu-7"]),
    ],
)
def test_a_device_is_named_by_its_uuid_or_else_by_all_that_it_has(said: dict[str, Any], names: list[str]) -> None:
    uses = list(offered_by(msgspec.convert(a_slice(said), DriverSlice)))
    assert [each.device for each in uses] == names
    assert all(each.is_offered and each.resource == NVIDIA for each in uses)


def test_what_our_own_driver_offers_is_no_others() -> None:
    assert not list(offered_by(msgspec.convert(a_slice(device(UUID), driver=DRIVER), DriverSlice)))


@pytest.fixture
async def api() -> AsyncGenerator[FakeApi]:
    async with FakeApi() as api:
        yield api


async def test_it_is_followed_and_every_change_is_told(api: FakeApi) -> None:
    changes = list[list[str]]()
    path = resource_slices_path()
    async with ApiServer(access_to(api.url), user_agent="test") as server:
        drivers = OtherDrivers(server, "n1", changed=lambda: changes.append([each.device for each in drivers.offered]))
        api.objects.create(path, a_slice(device(UUID)))
        api.objects.create(path, a_slice(device(UUID), driver=DRIVER))
        task = asyncio.create_task(drivers.run())
        try:
            await until(lambda: changes == [["GPU-1"]])
            api.objects.delete(f"{path}/n1-{NVIDIA}")
            await until(lambda: changes == [["GPU-1"], []])
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
