"""What kubelet gave away by itself: its PodResources service, and its device manager's own record.

The service leaves out init containers that end before the others start, so for containers that it does not name the
record counts. That one forgets nothing until a device is needed again, and knows pods by their uid alone: the folders
of logs say which pods those are, and the service, whether they have ended.

Older kubelets go on naming pods that have ended. The API server is asked only about a pod that seems to hold a card
which we hand out ourselves, so hardly ever.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, Protocol

import msgspec

from partage_base.cri import CHECKPOINT, CriError, PodResources, recorded_uses
from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, KubeError, pod_path
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.node import DeviceUse

LOGS: Final = "var/log/pods"
"""For each pod that has a container kubelet makes a folder here, named NAMESPACE_NAME_UID."""
_ENDED: Final = frozenset(("Succeeded", "Failed"))
_KNOWN_FOR_S: Final = 30.0
_WITHIN_S: Final = 1.0
_MOST_KNOWN: Final = 1024
_PodName = tuple[str, str]


class Kubelet:
    def __init__(self, resources: PodResources, root: Path) -> None:
        self._resources = resources
        self._checkpoint = root / CHECKPOINT
        self._logs = root / LOGS
        self._repeats = Repeats(every_s=300)

    async def in_use(self) -> list[DeviceUse] | None:
        """Everything that is in somebody's hands; None where kubelet can't be asked."""
        try:
            served = await self._resources.served()
        except CriError as error:
            self._repeats.failed("kubelet does not say which devices it gave away", error)
            return None
        uses = [
            DeviceUse(
                resource=given.resource,
                device=given.device,
                namespace=each.namespace,
                pod=each.pod,
                container=each.container,
            )
            for each in served
            for given in each.given
        ]
        named = {(use.resource, use.device) for use in uses}
        alive = {(each.namespace, each.pod) for each in served}
        return uses + [use for use in self._recorded(alive) if (use.resource, use.device) not in named]

    def _recorded(self, alive: AbstractSet[_PodName]) -> Iterator[DeviceUse]:
        recorded = recorded_uses(self._checkpoint) or ()
        pods = self._by_uid() if recorded else {}
        for use in recorded:
            namespace, pod = pods.get(use.pod_uid, ("", ""))
            if (namespace, pod) in alive:
                for device in use.devices:
                    yield DeviceUse(
                        resource=use.resource, device=device, namespace=namespace, pod=pod, container=use.container
                    )

    def _by_uid(self) -> dict[str, _PodName]:
        try:
            names = [path.name.split("_") for path in self._logs.iterdir()]
        except OSError as error:
            self._repeats.failed("init containers can't be told: no folders of pods' logs", error)
            return {}
        return {parts[2]: (parts[0], parts[1]) for parts in names if len(parts) == 3}  # noqa: PLR2004  see above


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    status: _Status = _Status()


class Pods:
    def __init__(self, server: ApiServer, clock: Callable[[], float] = time.monotonic) -> None:
        self._server = server
        self._clock = clock
        self._known: dict[_PodName, tuple[float, bool]] = {}

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
        try:
            async with asyncio.timeout(_WITHIN_S):  # a look waits for it
                pod = await self._server.get(pod_path(use.namespace, use.pod), _Pod)
        except (KubeError, TimeoutError):
            return False
        return pod.status.phase in _ENDED


class Holders(Protocol):
    """Who on this node has devices that somebody else than partage gave."""

    async def in_use(self, last: Inventory | None) -> list[DeviceUse] | None:
        """All of them; None where that can't be known. `last` is the inventory that was told last."""
        ...


class OfKubelet:
    def __init__(self, kubelet: Kubelet, pods: Pods) -> None:
        self._kubelet, self._pods = kubelet, pods

    async def in_use(self, last: Inventory | None) -> list[DeviceUse] | None:
        in_use = await self._kubelet.in_use()
        return None if in_use is None else await self._pods.without_ended(in_use, last)


class NoHolders:
    """Of a machine without a kubelet: only partage hands out cards there."""

    async def in_use(self, last: Inventory | None) -> list[DeviceUse] | None:  # noqa: ARG002  as the others have it
        return []
