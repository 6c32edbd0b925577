"""Watches pods, and goes on whatever breaks the watch.

There is one for all pods, whose order is the API server's, and one for innocents alone, so that the attacker's objects
never delay their measurement.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from typing import Final

from partage_base.kube import ApiServer, Bookmark, Deleted, KubeError, MalformedResponse, Undecodable
from partage_scheduler.objects import ApiPod

_AGAIN_S: Final = 0.5


class Witness:
    """Calls back for each pod that came or changed, in the API server's order, and for each that is gone."""

    def __init__(
        self, server: ApiServer, path: str, *, told: Callable[[ApiPod], None], gone: Callable[[ApiPod], None]
    ) -> None:
        self._server, self._path, self._told, self._gone = server, path, told, gone
        self._there: dict[str, ApiPod] = {}
        self.unreadable = 0
        """How often an event ended a watch; a scheduler follows pods by the same code."""
        self.undecodable: set[str] = set()
        """Names of pods in events that could not be decoded."""

    async def follow(self) -> None:
        while True:
            try:
                await self._watch(await self._look())
            except MalformedResponse:
                self.unreadable += 1
            except KubeError:
                pass  # it is asked again
            await asyncio.sleep(_AGAIN_S)

    async def _look(self) -> str:
        listing = await self._server.list(self._path, ApiPod)
        self.undecodable |= {name for _, name in (each.key for each in listing.undecodable)}
        there = {pod.uid for pod in listing.items}
        for pod in [pod for pod in self._there.values() if pod.uid not in there]:
            self._is_gone(pod)
        for pod in listing.items:
            self._is_there(pod)
        return listing.resource_version

    async def _watch(self, since: str) -> None:
        while True:
            async with aclosing(self._server.watch(self._path, ApiPod, since=since)) as events:
                async for event in events:
                    since = event.version
                    if isinstance(event, Deleted):
                        self._is_gone(event.item)
                    elif isinstance(event, Undecodable):
                        self.undecodable.add(event.key[1])
                    elif not isinstance(event, Bookmark):
                        self._is_there(event.item)

    def _is_there(self, pod: ApiPod) -> None:
        self._there[pod.uid] = pod
        self._told(pod)

    def _is_gone(self, pod: ApiPod) -> None:
        self._there.pop(pod.uid, None)
        self._gone(pod)
