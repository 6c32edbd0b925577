"""Lists the container runtime's containers with a grant or a claim, and stops containers.

An unavailable runtime only makes data stale: its silence must not be taken for an empty list. A container's annotation,
CDI devices and first pid never change, so each is requested and decoded once. CDI devices are in no list, so they are
requested only where claims are served.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, Protocol

import structlog

from partage_base.cri import CriError, ListedContainer, PeerRefused, RuntimeClient
from partage_base.daemon.logs import Repeats
from partage_isolation.audit.listing import Listing, RuntimeContainer
from partage_plugins.api.claims import ClaimUid, claim_key, claimed_by
from partage_plugins.api.keys import CONTAINER
from partage_plugins.api.names import ContainerKey
from partage_plugins.codecs import decode_container
from partage_plugins.errors import DecodeError

_NOT_FOUND: Final = 5
_log: Final = structlog.get_logger()


class Runtime:
    def __init__(self, client: RuntimeClient) -> None:
        self._client = client
        self._keys: dict[str, ContainerKey | None] = {}
        self._claims: dict[str, ClaimUid | None] = {}
        self._pids: dict[str, int] = {}
        self._repeats = Repeats(every_s=60)

    async def containers(self, *, with_claims: bool = False) -> Listing | None:
        """All containers with our annotation, in any state; None where the runtime does not respond.

        `with_claims` adds those that have a claim and have not ended.
        """
        try:
            listed = await self._client.containers()
            found = [await self._described(each, key) for key, each in self._granted(listed).items()]
            if with_claims:
                found += [
                    await self._described(each, claim_key(claim), claim) for claim, each in await self._claiming(listed)
                ]
        except CriError as error:
            what = "the container runtime does not answer; no container is collected until it does"
            self._repeats.failed(what, error)
            return None
        self._pids = {each.id: each.pid for each in found if each.pid is not None}
        return Listing(found)

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        """Stop a container; raises `CriError` where it is not known to have stopped."""
        await self._client.stop(container_id, grace_s=grace_s)

    def _granted(self, listed: Iterable[ListedContainer]) -> dict[ContainerKey, ListedContainer]:
        ours = {each.id: each for each in listed if CONTAINER in each.annotations}
        self._keys = {id_: self._keys[id_] if id_ in self._keys else _key(each) for id_, each in ours.items()}
        found = dict[ContainerKey, ListedContainer]()
        for id_, key in self._keys.items():
            if key is not None and (key not in found or ours[id_].running):
                found[key] = ours[id_]
        return found

    async def _claiming(self, listed: Iterable[ListedContainer]) -> list[tuple[ClaimUid, ListedContainer]]:
        others = [each for each in listed if CONTAINER not in each.annotations and not each.exited]
        claims = dict[str, ClaimUid | None]()
        for each in others:
            if each.id not in self._claims:  # kept immediately, so that a failed listing is continued by the next
                self._claims[each.id] = await self._claim(each.id)
            claims[each.id] = self._claims.get(each.id)
        self._claims = claims
        return [(claim, each) for each in others if (claim := claims[each.id]) is not None]

    async def _claim(self, id_: str) -> ClaimUid | None:
        """The claim of a container; the first of several, with which the library allows nothing anyway."""
        try:
            devices = await self._client.cdi_devices(id_) or ()
        except PeerRefused as error:
            if error.status != _NOT_FOUND:
                raise
            return None  # removed meanwhile
        return next((claim for claim in map(claimed_by, devices) if claim is not None), None)

    async def _described(
        self, each: ListedContainer, key: ContainerKey, claim: ClaimUid | None = None
    ) -> RuntimeContainer:
        pid = self._pids.get(each.id) if each.running else None
        if each.running and pid is None:
            pid = await self._client.pid(each.id)
            if pid is not None:
                self._pids[each.id] = pid
        return RuntimeContainer(each.id, key, pid, each.running, claim)


class NoRuntime:
    """For a machine on which only engines run containers, which list nothing here."""

    async def containers(self, *, with_claims: bool = False) -> Listing:
        del with_claims
        return Listing()

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        """Log an error: nothing is listed, so there is nothing to stop."""
        del grace_s
        _log.error("cannot stop a container that no runtime lists", container=container_id)


def _key(container: ListedContainer) -> ContainerKey | None:
    try:
        return decode_container(container.annotations[CONTAINER], ()).key
    except DecodeError as error:
        _log.warning("failed to decode a container's annotation", container=container.id, why=str(error))
        return None


_GRACE_S: Final = 1
_AGAIN_S: Final = 5.0
"""Delay after a stop that the runtime confirmed."""


class Stopper(Protocol):
    """The interface for stopping containers; see `Runtime`."""

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        """Stop a container; raises `CriError` where it is not known to have stopped."""
        ...


class Stopping:
    def __init__(
        self,
        runtime: Stopper,
        *,
        stopped: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        self._runtime, self._stopped = runtime, stopped
        self._running: dict[str, asyncio.Task[None]] = {}
        self._done_s: dict[str, float] = {}

    def stop(self, key: ContainerKey, container_id: str, why: str) -> None:
        """Start to stop a container, unless that is in progress or was done just now."""
        done_s = self._done_s.get(container_id)
        if container_id in self._running or (done_s is not None and time.monotonic() - done_s < _AGAIN_S):
            return
        task = asyncio.create_task(self._stop(key, container_id, why), name=f"stopping {container_id}")
        self._running[container_id] = task
        task.add_done_callback(lambda _: self._running.pop(container_id, None))

    async def close(self) -> None:
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _stop(self, key: ContainerKey, container_id: str, why: str) -> None:
        about = {"key": key, "container": container_id, "because": why}
        try:
            await self._runtime.stop(container_id, grace_s=_GRACE_S)
        except CriError as error:
            self._stopped("failed")
            what = "a container whose limits are not in force can't be stopped; it is tried again"
            _log.error(what, why=str(error), **about)
            return
        self._stopped("done")
        self._done_s = {one: at for one, at in self._done_s.items() if time.monotonic() - at < _AGAIN_S}
        self._done_s[container_id] = time.monotonic()
        _log.warning("stopped a container whose limits were not in force", **about)
