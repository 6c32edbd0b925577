"""Renews the node's Lease, which shows others that the inventory is kept up to date.

It is renewed only while that is so; a scheduler that sees no renewal gives the node no new pods. Each renewal also
publishes the ids of the keys that the node trusts, since a key is retired only once every node has its successor, the
versions that run, and what became of pods that were to be suspended; a change of that is published at once. The Lease
is owned by the Node object, so the cluster removes it with the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    ApiServer,
    Backoff,
    Conflict,
    KubeError,
    Lease,
    NotFound,
    lease_path,
    leases_path,
    micro_time,
)
from partage_plugins.api.keys import KEYS, RESIZED_PODS, SUSPENDED_PODS, VERSIONS

LATE_BEATS: Final = 4
"""Renewals that may be missed before others consider the node silent."""
_LOOK_S: Final = 0.5
"""Time between looks for a change that is published at once."""


class Heartbeat:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        *,
        namespace: str,
        node: str,
        every_s: float,
        node_uid: Callable[[], str],
        beats: Callable[[], bool],
        keys: Callable[[], Iterable[str]],
        versions: Callable[[], Mapping[str, str]] = dict,
        suspended: Callable[[], str] = str,
        beaten: Callable[[str], None] = lambda _outcome: None,
    ) -> None:
        """`suspended` returns the reports on suspended pods, as they are published; empty if there are none."""
        self._server = server
        self._namespace, self._node = namespace, node
        self._every_s = every_s
        self._node_uid, self._beats, self._beaten = node_uid, beats, beaten
        self._keys, self._versions, self._suspended = keys, versions, suspended
        self._reports = ""
        self._lease: Lease | None = None
        self._backoff = Backoff(first_s=min(1.0, every_s), most_s=every_s)
        self._repeats = Repeats(every_s=60)

    async def run(self) -> None:
        while True:
            self._reports = self._suspended()
            wait_s = await self._beat() if self._beats() else min(1.0, self._every_s)
            await self._wait(wait_s)

    async def _wait(self, wait_s: float) -> None:
        """Sleep, but only until there is another report on suspended pods."""
        while wait_s > 0 and self._suspended() == self._reports:
            await asyncio.sleep(min(wait_s, _LOOK_S))
            wait_s -= _LOOK_S

    async def _beat(self) -> float:
        """Renew once; returns the delay until the next attempt."""
        try:
            self._lease = await self._renewed()
        except KubeError as error:  # keep the known Lease: rereading it would cost a call
            self._beaten("failed")
            self._repeats.failed("no heartbeat; it will be tried again", error)
            return self._backoff.after(error)
        self._beaten("done")
        self._backoff.reset()
        return self._every_s

    async def _renewed(self) -> Lease:
        try:
            if self._lease is not None:
                return await self._put(self._lease)
        except (Conflict, NotFound):  # changed or deleted by others: read it again
            self._lease = None
        try:
            return await self._put(await self._server.get(self._path, Lease))
        except NotFound:
            return await self._server.create(leases_path(self._namespace), self._body(None), Lease)

    async def _put(self, lease: Lease) -> Lease:
        return await self._server.replace(self._path, self._body(lease), Lease)

    @property
    def _path(self) -> str:
        return lease_path(self._namespace, self._node)

    def _body(self, lease: Lease | None) -> dict[str, object]:
        now = micro_time(datetime.now(UTC))
        kept = lease.metadata.annotations if lease is not None else {}
        metadata: dict[str, object] = {
            "name": self._node,
            "namespace": self._namespace,
            "annotations": {
                **{key: text for key, text in kept.items() if key == RESIZED_PODS},  # the scheduler's
                KEYS: ",".join(sorted(self._keys())),
                VERSIONS: ",".join(f"{name}={text}" for name, text in sorted(self._versions().items())),
                **({SUSPENDED_PODS: self._reports} if self._reports else {}),
            },
        }
        if lease is not None:
            metadata["resourceVersion"] = lease.metadata.resource_version
        if uid := self._node_uid():
            owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": uid}
            metadata["ownerReferences"] = [owner]
        spec = {
            "holderIdentity": self._node,
            "leaseDurationSeconds": max(1, int(LATE_BEATS * self._every_s)),
            "acquireTime": (lease.spec.acquire_time if lease else "") or now,
            "renewTime": now,
            "leaseTransitions": lease.spec.lease_transitions if lease else 0,
        }
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}
