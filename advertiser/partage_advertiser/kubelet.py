"""Devices that kubelet allocated itself, without those of ended pods.

Older kubelets keep listing pods that have ended. The API server is queried only about a pod that seems to hold a card
that we hand out ourselves, so rarely.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from partage_base.cri import CHECKPOINT, CriError, PodResources, recorded_uses
from partage_base.cri.device_uses import LOGS, PodName, device_uses, pods_by_uid
from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, KubeError, pod_path
from partage_plugins.api import GPU
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.node import DeviceUse

_ENDED: Final = frozenset(("Succeeded", "Failed"))
_KNOWN_FOR_S: Final = 30.0
_WITHIN_S: Final = 1.0
_MOST_KNOWN: Final = 1024


class Kubelet:
    def __init__(self, resources: PodResources, root: Path) -> None:
        self._resources = resources
        self._checkpoint = root / CHECKPOINT
        self._logs = root / LOGS
        self._repeats = Repeats(every_s=300)

    async def in_use(self) -> list[DeviceUse] | None:
        """All devices in use; None if kubelet does not answer."""
        try:
            served = await self._resources.served()
        except CriError as error:
            self._repeats.failed("kubelet does not say which devices it gave away", error)
            return None
        recorded = recorded_uses(self._checkpoint) or ()
        return device_uses(served, recorded, self._pods() if recorded else {})

    def _pods(self) -> dict[str, PodName]:
        try:
            return pods_by_uid(self._logs)
        except OSError as error:
            self._repeats.failed("init containers can't be told: no folders of pods' logs", error)
            return {}


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class Pods:
    def __init__(self, server: ApiServer, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._known: dict[PodName, tuple[float, bool]] = {}

    async def without_ended(self, uses: Sequence[DeviceUse], inventory: Inventory | None) -> list[DeviceUse]:
        """The uses without those of ended pods, checked only for cards that we share."""
        part = inventory.part(GPU) if inventory else None
        ours = [card.id for card in part.cards if card.pool == "shared"] if part else []
        return [
            use
            for use in uses
            if not (use.namespace and any(id_ in use.device for id_ in ours)) or not await self._has_ended(use)
        ]

    async def _has_ended(self, use: DeviceUse) -> bool:
        who = (use.namespace, use.pod)
        asked, ended = self._known.get(who, (float("-inf"), False))
        if self._clock() - asked > _KNOWN_FOR_S:
            ended = await self._asked(use)
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            self._known[who] = self._clock(), ended
        return ended

    async def _asked(self, use: DeviceUse) -> bool:
        """Whether the pod has ended; False if the API server does not know it or does not answer: it may be running."""
        try:
            async with asyncio.timeout(_WITHIN_S):  # an inspection waits for it
                pod = await self._server.get(pod_path(use.namespace, use.pod), _Pod)
        except (KubeError, TimeoutError):
            return False
        return pod.status.phase in _ENDED
