"""Keeps the node's ResourceSlices up to date: watches them, and writes them if they differ from the wanted devices.

They are written only after kubelet registered the driver: before that, pods would arrive that cannot be prepared. A
kubelet that starts deletes its node's slices, which the watch shows immediately.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    KubeError,
    Listed,
    Lost,
    Node,
    Seen,
    Undecodable,
    follow,
    node_path,
    resource_slice_path,
    resource_slices_path,
)
from partage_dra.resource_slice import Content, ResourceSlice, are_true, contents_of, slices_of
from partage_dra.slices import CounterSet, Device
from partage_plugins.api.claims import DRIVER

FIRST_S: Final = 0.2
MOST_S: Final = 8.0
_log = structlog.get_logger()


class Publisher:
    def __init__(self, server: ApiServer, node: str, *, wrote: Callable[[str], None] = lambda _outcome: None) -> None:
        self._server, self._node, self._wrote = server, node, wrote
        self._wanted: tuple[Content, ...] | None = None
        """None while unknown."""
        self._standing: dict[str, ResourceSlice] = {}
        self._is_known = False
        self._ours: dict[str, int] = {}
        """Generations of our last writes; any other generation was written by someone else."""
        self._changed = asyncio.Event()
        self._backoff = Backoff(first_s=FIRST_S, most_s=MOST_S)
        self._repeats = Repeats(every_s=30)

    def want(self, devices: Sequence[Device], counters: Sequence[CounterSet] = ()) -> None:
        """Set the devices to publish; if empty, there are no slices."""
        self._wanted = contents_of(devices, counters)
        self._changed.set()

    @property
    def is_true(self) -> bool:
        """Whether the slices match, as far as we know."""
        if not self._is_known or self._wanted is None:
            return False
        standing = self._standing
        are_ours = all(self._ours.get(name, each.version) == each.version for name, each in standing.items())
        return are_ours and are_true(self._node, standing, self._wanted)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow())
            group.create_task(self._write())

    async def _follow(self) -> None:
        backoff = Backoff(first_s=FIRST_S, most_s=MOST_S)
        only = f"spec.nodeName={self._node},spec.driver={DRIVER}"
        async for seen in follow(self._server, resource_slices_path(), ResourceSlice, fields=only, backoff=backoff):
            self._take(seen)

    def _take(self, seen: Seen[ResourceSlice]) -> None:
        match seen:
            case Listed(items):
                self._standing, self._is_known = {item.metadata.name: item for item in items}, True
            case Changed(item):
                self._standing[item.metadata.name] = item
            case Deleted(item):
                self._standing.pop(item.metadata.name, None)
                self._ours.pop(item.metadata.name, None)
            case Lost(error):
                self._repeats.failed("the API server can't be followed; it will be tried again", error)
            case Undecodable():
                self._repeats.say("a ResourceSlice of this node can't be read", why=seen.why)
        self._changed.set()

    async def _write(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            while self._is_known and self._wanted is not None and not self.is_true:
                await self._write_once(self._wanted)

    async def _write_once(self, wanted: tuple[Content, ...]) -> None:
        try:
            await self._put(wanted)
        except KubeError as error:
            self._wrote("failed")
            self._repeats.failed("the ResourceSlices are not in the API server yet", error)
            await asyncio.sleep(self._backoff.after(error))
            return
        self._wrote("done")
        self._backoff.reset()
        devices = sum(len(each.get("devices", ())) for each in wanted)
        _log.info("devices published" if devices else "no devices any more", devices=devices)

    async def _put(self, wanted: tuple[Content, ...]) -> None:
        """Write all slices, based on the watch: a node may not read a slice that does not exist."""
        bodies = (
            slices_of(await self._server.get(node_path(self._node), Node), wanted, self._standing) if wanted else []
        )
        for body in bodies:
            await self._put_one(body["metadata"]["name"], body)
        names = {body["metadata"]["name"] for body in bodies}
        for name, each in [(name, each) for name, each in self._standing.items() if name not in names]:
            await self._server.delete(resource_slice_path(name), uid=each.metadata.uid)
            self._standing.pop(name, None)

    async def _put_one(self, name: str, body: Mapping[str, Any]) -> None:
        before = self._standing.get(name)
        if before is None:
            written = await self._server.create(resource_slices_path(), body, ResourceSlice)
        else:
            written = await self._server.replace(resource_slice_path(name), body, ResourceSlice)
        self._ours[name] = written.version
        if self._standing.get(name) is before:  # else the watch has a newer version
            self._standing[name] = written
