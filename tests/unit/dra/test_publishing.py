"""The slices of a node have the right content, also after others write to them, and no wrong slice remains."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from partage_base.inventory_file import InventoryFile
from partage_base.kube import ApiServer, resource_slices_path
from partage_dra.parts import cuts_of
from partage_dra.publisher import Publisher
from partage_dra.service import DraDriver
from partage_dra.settings import DraSettings
from partage_dra.slices import counters_of, devices_of
from partage_plugins.api import GPU, Inventory
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import encode_inventory
from rig.client.wait import patient
from support.fake_api import FakeApi
from support.kube import access_to
from unit.dra.making import card, part

SLICES = resource_slices_path()
PART, CUTS = part(card()), cuts_of(["all=4"])


@pytest.fixture
async def api() -> AsyncGenerator[FakeApi]:
    async with FakeApi() as api:
        api.objects.create("/api/v1/nodes", {"metadata": {"name": "n1"}})
        yield api


@asynccontextmanager
async def publishing(api: FakeApi) -> AsyncGenerator[Publisher]:
    async with ApiServer(access_to(api.url), user_agent="test") as server:
        publisher = Publisher(server, "n1")
        task = asyncio.create_task(publisher.run())
        try:
            yield publisher
            assert not task.done()
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


def names(api: FakeApi) -> list[str]:
    return sorted(each["metadata"]["name"] for each in api.objects.select(SLICES, {}))


async def until(holds: Callable[[], bool]) -> None:
    async with patient(holds):
        while not holds():  # noqa: ASYNC110  nothing tells of it
            await asyncio.sleep(0.01)


async def test_slices_come_change_and_go_with_what_is_wanted(api: FakeApi) -> None:
    async with publishing(api) as publisher:
        publisher.want(devices_of(PART, CUTS), counters_of(PART, CUTS))
        await until(lambda: publisher.is_true)
        assert names(api) == ["n1-gpu.partage.dev", "n1-gpu.partage.dev-1"]
        publisher.want(devices_of(PART))
        await until(lambda: publisher.is_true)
        (left,) = api.objects.select(SLICES, {})
        assert left["spec"]["pool"] == {"name": "n1", "generation": 2, "resourceSliceCount": 1}
        publisher.want(())
        await until(lambda: publisher.is_true)
        assert names(api) == []


async def test_one_that_kubelet_deletes_comes_again(api: FakeApi) -> None:
    async with publishing(api) as publisher:
        publisher.want(devices_of(PART))
        await until(lambda: publisher.is_true)
        api.objects.delete(f"{SLICES}/n1-gpu.partage.dev")
        await until(lambda: api.count("POST") == 2 and publisher.is_true)
        assert names(api) == ["n1-gpu.partage.dev"]


async def test_nothing_is_published_before_kubelet_has_registered_the_driver(api: FakeApi, tmp_path: Path) -> None:
    """Pods would come that no driver can prepare."""
    looks = 0

    class Preparing:
        async def tidy(self) -> None:
            nonlocal looks
            looks += 1

    (tmp_path / INVENTORY_FILE).parent.mkdir(parents=True)
    (tmp_path / INVENTORY_FILE).write_bytes(encode_inventory(Inventory(kinds={GPU.name: PART})))
    async with ApiServer(access_to(api.url), user_agent="test") as server, asyncio.TaskGroup() as group:
        works = list[asyncio.Task[None]]()
        tasks = SimpleNamespace(start=lambda work, name: works.append(group.create_task(work, name=name)))
        health: Any = SimpleNamespace(ready=lambda _: None)
        daemon: Any = SimpleNamespace(tasks=tasks, health=health)
        preparing: Any = Preparing()
        settings = DraSettings(node_name="n1", root=tmp_path, look_every_s=0.1)
        driver = DraDriver(settings, daemon, preparing, InventoryFile(tmp_path), Publisher(server, "n1"))
        works.append(group.create_task(driver.run(asyncio.Event())))
        await until(lambda: looks > 1)
        assert api.count("GET") + api.count("POST") == 0
        driver.registered()
        await until(lambda: names(api) == ["n1-gpu.partage.dev"])
        for each in works:
            each.cancel()
