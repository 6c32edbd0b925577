"""Keeps the leader's address in an EndpointSlice, by which the extender's Service finds one of several replicas.

All replicas are Ready, so readiness can't tell which one leads. The slice is installed with the Service and not created
here, since a right to create can't be restricted to a name; only the leader changes its one address, and checks it
every few seconds, which undoes late writes of others and manual edits. The address of a leader that died remains until
the next one leads: a follower at that address answers that it does not lead.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec
import structlog

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, KubeError, endpoint_slice_path

EVERY_S: Final = 5.0
_log = structlog.get_logger()


class _SliceMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str = ""


class _Conditions(msgspec.Struct, frozen=True):
    ready: bool | None = None


class _Endpoint(msgspec.Struct, frozen=True):
    addresses: tuple[str, ...] = ()
    conditions: _Conditions = _Conditions()


class _Slice(msgspec.Struct, frozen=True):
    metadata: _SliceMeta = _SliceMeta()
    endpoints: tuple[_Endpoint, ...] | None = None


class LeaderEndpoint:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        *,
        namespace: str,
        name: str,
        address: str,
        leads: Callable[[], bool],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`name` is the slice's, `address` ours; nothing is written while `leads` returns False."""
        self._server, self._leads, self._sleep = server, leads, sleep
        self._path = endpoint_slice_path(namespace, name)
        self._wanted = (_Endpoint((address,), _Conditions(ready=True)),)
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        while True:
            try:
                await self._look()
            except KubeError as error:
                what = "the extender's Service may lead elsewhere: its EndpointSlice can't be kept"
                self._repeats.failed(what, error)
            await self._sleep(EVERY_S)

    async def _look(self) -> None:
        found = await self._server.get(self._path, _Slice)
        if found.endpoints != self._wanted and self._leads():
            meta = {"resourceVersion": found.metadata.resource_version}  # a late write fails
            await self._server.patch(self._path, {"metadata": meta, "endpoints": self._wanted}, msgspec.Raw)
            _log.info("the extender's Service points here now", path=self._path, address=self._wanted[0].addresses[0])
