"""Says where the leader is asked: in an EndpointSlice, by which the extender's Service finds one of several replicas.

All replicas are Ready, so readiness can't say who leads. The slice is delivered with the Service and made by no part
here, since a right to create can't be narrowed to a name; the leader alone changes its one address, and looks again
every few seconds, so whatever another one wrote late, or somebody by hand, does not stay. Of a leader that died the
address stands until the next one leads: asked there meanwhile, a follower says that it does not lead.
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
        """`name` is the slice's, `address` ours; while `leads` says no, nothing is written."""
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
            meta = {"resourceVersion": found.metadata.resource_version}  # who writes late changes nothing
            await self._server.patch(self._path, {"metadata": meta, "endpoints": self._wanted}, msgspec.Raw)
            _log.info("the extender's Service leads here", path=self._path, address=self._wanted[0].addresses[0])
