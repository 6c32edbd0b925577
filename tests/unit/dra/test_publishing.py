"""The slices of a node say what they should, whatever others write there, and none is left that should not be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import pytest

from partage_base.kube import ApiServer, resource_slices_path
from partage_dra.parts import cuts_of
from partage_dra.publishing import Publisher
from partage_dra.slices import counters_of, devices_of
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
