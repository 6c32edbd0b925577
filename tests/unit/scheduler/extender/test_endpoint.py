"""The extender's Service points to the leader, and a change of the leader changes one address."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from partage_base.kube import ApiServer
from partage_scheduler.api import leader_endpoint as endpoint_module
from partage_scheduler.api.leader_endpoint import LeaderEndpoint
from partage_scheduler.settings import SchedulerSettings
from support.fake_api import FakeApi, Refuse
from support.kube import until

SLICES = "/apis/discovery.k8s.io/v1/namespaces/ours/endpointslices"
PATH = f"{SLICES}/extender"


class Replica:
    """A replica that leads until `leads` is cleared."""

    def __init__(self, server: ApiServer, address: str) -> None:
        self.leads = True
        self.looks = 0
        endpoint = LeaderEndpoint(
            server, namespace="ours", name="extender", address=address, leads=lambda: self.leads, sleep=self._rest
        )
        self._task = asyncio.create_task(endpoint.run())

    async def _rest(self, _seconds: float) -> None:
        self.looks += 1
        await asyncio.sleep(0.005)

    async def looked(self) -> None:
        at = self.looks
        await until(lambda: self.looks >= at + 2)

    async def die(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])


def add_slice(api: FakeApi, endpoints: list[dict[str, list[str]]] | None = None) -> None:
    api.objects.create(SLICES, {"metadata": {"name": "extender"}, "ports": [{"port": 9410}], "endpoints": endpoints})


def addresses(api: FakeApi) -> list[str]:
    return [each for endpoint in api.objects.get(PATH).get("endpoints") or [] for each in endpoint["addresses"]]


@pytest.mark.parametrize("endpoints", [None, [], [{"addresses": ["10.0.0.9"]}]])
async def test_who_leads_is_there_alone_and_all_else_stays(api: FakeApi, server: ApiServer, endpoints: Any) -> None:
    add_slice(api, endpoints)
    one = Replica(server, "10.0.0.1")
    await until(lambda: addresses(api) == ["10.0.0.1"])
    assert api.objects.get(PATH)["ports"] == [{"port": 9410}]
    await one.looked()
    assert api.count("PATCH") == 1, "a steady state writes nothing"
    await one.die()


async def test_the_next_leader_takes_the_place_of_one_that_died_and_nothing_late_stays(
    api: FakeApi, server: ApiServer
) -> None:
    add_slice(api)
    one = Replica(server, "10.0.0.1")
    await until(lambda: addresses(api) == ["10.0.0.1"])
    await one.die()
    assert addresses(api) == ["10.0.0.1"]
    two = Replica(server, "10.0.0.2")
    await until(lambda: addresses(api) == ["10.0.0.2"])
    api.objects.patch(PATH, {"endpoints": [{"addresses": ["10.0.0.1"]}]})
    await until(lambda: addresses(api) == ["10.0.0.2"])
    await two.die()


async def test_who_leads_no_more_writes_nothing(api: FakeApi, server: ApiServer) -> None:
    add_slice(api)
    one = Replica(server, "10.0.0.1")
    one.leads = False
    await one.looked()
    assert addresses(api) == []
    await one.die()


async def test_what_is_in_the_way_is_tried_again(api: FakeApi, server: ApiServer) -> None:
    one = Replica(server, "10.0.0.1")
    await one.looked()
    api.expect(Refuse(409, "Conflict"), method="PATCH", times=2)
    add_slice(api)
    await until(lambda: addresses(api) == ["10.0.0.1"])
    await one.die()


def test_an_address_is_given_where_a_slice_is() -> None:
    for address in ("", "host", "10.0.0.1:9410"):
        with pytest.raises(ValueError, match="pod_ip"):
            SchedulerSettings(extender_slice="partage-extender", pod_ip=address)
    assert SchedulerSettings(extender_slice="partage-extender", pod_ip="fd00::1").extender_slice
    assert SchedulerSettings().lease_s > endpoint_module.EVERY_S
