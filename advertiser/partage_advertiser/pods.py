"""Tells pods that have ended from those that hold their devices: older kubelets go on naming them.

The API server is asked only about a pod that seems to hold a card which we hand out ourselves, so hardly ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from partage_base.kube import ApiServer, KubeError, pod_path
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.node import DeviceUse

_ENDED: Final = frozenset(("Succeeded", "Failed"))
_KNOWN_FOR_S: Final = 30.0
_WITHIN_S: Final = 1.0
_MOST_KNOWN: Final = 1024


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class Pods:
    def __init__(self, server: ApiServer | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._known: dict[tuple[str, str], tuple[float, bool]] = {}

    async def without_ended(self, uses: Sequence[DeviceUse], inventory: Inventory | None) -> list[DeviceUse]:
        """Without those of pods that have ended, as far as that makes a difference."""
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
        """A pod that the API server does not know may run all the same; so may any while it can't be asked."""
        if self._server is None:
            return False
        try:
            async with asyncio.timeout(_WITHIN_S):  # a look waits for it
                pod = await self._server.get(pod_path(use.namespace, use.pod), _Pod)
        except (KubeError, TimeoutError):
            return False
        return pod.status.phase in _ENDED
