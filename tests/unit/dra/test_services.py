"""kubelet's calls over gRPC: requests are passed on, and an error of one claim is that claim's answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from grpclib.client import Channel, UnaryStreamMethod, UnaryUnaryMethod
from grpclib.server import Server

from partage_base.listener import listen
from partage_dra.kubelet import messages
from partage_dra.kubelet.services import DeviceState, Health, Preparation, Registration
from partage_dra.slices import devices_of
from partage_plugins.api.claims import ClaimDevice, ClaimRecord, ClaimRef, claim_device
from partage_plugins.errors import Refused
from unit.dra.making import ASKED, A, card, part

DRA = "/k8s.io.kubelet.pkg.apis.dra.v1.DRAPlugin/"
DEVICE = ClaimDevice(request="gpu", pool="n1", device="gpu-a", card=A, share_id="5f0c")


class Claims:
    def __init__(self) -> None:
        self.error: Exception | None = None
        self.asked: list[ClaimRef] = []

    async def prepare(self, claim: ClaimRef) -> ClaimRecord:
        self.asked.append(claim)
        if self.error is not None and claim.name == "share":
            raise self.error
        return ClaimRecord(claim=claim, devices=(DEVICE,), grants=(), cdi=(claim_device(claim.uid),))

    async def release(self, claim: ClaimRef) -> None:
        self.asked.append(claim)
        if self.error is not None:
            raise self.error


@asynccontextmanager
async def called(folder: Path, *services: Any) -> AsyncGenerator[Channel]:
    server = Server(list(services))
    await server.start(sock=listen(folder / "s"))
    channel = Channel(path=str(folder / "s"))
    try:
        yield channel
    finally:
        channel.close()
        server.close()
        await server.wait_closed()


async def asked(channel: Channel, path: str, request: Any, answer: type) -> Any:
    return await UnaryUnaryMethod(channel, path, type(request), answer)(request)


def claims_request(*claims: ClaimRef) -> Any:
    request: Any = messages.ClaimsRequest()
    for each in claims:
        request.claims.add(namespace=each.namespace.encode(), name=each.name.encode(), uid=each.uid.encode())
    return request


async def test_kubelet_learns_where_the_driver_is_and_says_that_it_knows(tmp_path: Path) -> None:
    registered: list[bool] = []
    service = "/pluginregistration.Registration/"
    async with called(tmp_path, Registration("/p/dra.sock", registered=lambda: registered.append(True))) as channel:
        info = await asked(channel, f"{service}GetInfo", messages.InfoRequest(), messages.PluginInfo)
        assert (info.type, info.name, info.endpoint) == (b"DRAPlugin", b"gpu.partage.dev", b"/p/dra.sock")
        assert b"v1.DRAPlugin" in info.supported_versions
        for done in (False, True):
            status: Any = messages.RegistrationStatus()
            status.plugin_registered = done
            await asked(channel, f"{service}NotifyRegistrationStatus", status, messages.RegistrationStatusResponse)
            assert len(registered) == done


async def test_each_claim_has_its_devices_or_its_reason(tmp_path: Path) -> None:
    claims = Claims()
    claims.error = Refused("partage: no room")
    other = ClaimRef(ASKED.namespace, "other", ASKED.uid)
    async with called(tmp_path, Preparation(claims)) as channel:
        request = claims_request(ASKED, other)
        answer = await asked(channel, f"{DRA}NodePrepareResources", request, messages.PrepareResponse)
    assert claims.asked == [ASKED, other]
    refused, given = (entry.value for entry in answer.claims)
    assert (refused.error, len(refused.devices)) == (b"partage: no room", 0)
    (device,) = given.devices
    assert given.error == b""
    assert (list(device.request_names), device.device_name, device.share_id) == ([b"gpu"], b"gpu-a", b"5f0c")
    assert list(device.cdi_device_ids) == [claim_device(ASKED.uid).encode()]


async def test_a_defect_costs_its_claim_and_is_told(tmp_path: Path) -> None:
    claims = Claims()
    claims.error = ZeroDivisionError()
    async with called(tmp_path, Preparation(claims)) as channel:
        request = claims_request(ASKED)
        answer = await asked(channel, f"{DRA}NodeUnprepareResources", request, messages.UnprepareResponse)
    assert b"a defect of its own" in answer.claims[0].value.error


async def test_every_claim_that_was_asked_about_has_an_entry(tmp_path: Path) -> None:
    async with called(tmp_path, Preparation(Claims())) as channel:
        request = claims_request(ASKED)
        answer = await asked(channel, f"{DRA}NodeUnprepareResources", request, messages.UnprepareResponse)
    assert [(entry.key, entry.value.error) for entry in answer.claims] == [(ASKED.uid.encode(), b"")]


async def test_health_is_told_as_it_changes(tmp_path: Path) -> None:
    (device,) = devices_of(part(card()))
    waiting: asyncio.Queue[Sequence[DeviceState]] = asyncio.Queue()

    async def states() -> AsyncIterator[Sequence[DeviceState]]:
        while True:
            yield await waiting.get()

    async with called(tmp_path, Health("n1", states)) as channel:
        path = "/v1alpha1.DRAResourceHealth/NodeWatchResources"
        watch: Any = UnaryStreamMethod(channel, path, messages.HealthRequest, messages.HealthResponse)
        async with watch.open() as stream:
            await stream.send_message(messages.HealthRequest(), end=True)
            for why, health in (("", 1), ("xid", 2)):
                await waiting.put([DeviceState(device, why)])
                (told,) = (await stream.recv_message()).devices
                assert (told.health, told.message, told.device.device_name) == (
                    health,
                    why.encode(),
                    device.name.encode(),
                )
            await stream.cancel()
