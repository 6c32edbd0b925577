"""kubelet on this node: the cards that it gave to containers by itself, and the sign that it speaks through crishim.

What it gave is known from its PodResources service and from its device manager's own record. PodResources leaves out
init containers that end before the others start. The device manager records those too, when it allocates and so before
their create, in a file that only root reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from partage_base.cri import CHECKPOINT, CreateRequest, CriError, PodResources, recorded_uses
from partage_base.cri.device_uses import LOGS, device_uses, pods_by_uid
from partage_crishim.rules.errors import NodeNotReady, NoRoom
from partage_crishim.rules.guard import card_ids
from partage_crishim.rules.natives import require_ours
from partage_crishim.verdicts import STATUS
from partage_plugins.vocabulary import CardId, GpuGrant, GpuPart
from partage_plugins.vocabulary.node import DeviceUse

CLAIMS: Final = "var/lib/kubelet/dra_manager_state"
"""kubelet's record of what DRA drivers gave; its form is not needed here."""
_Stamp = tuple[int, int, int, int] | None
_UNKNOWN: Final = (
    "partage: kubelet does not say which cards it gave away by itself, so none of them is shared now; kubelet tries "
    "again"
)
_SIGN_EVERY_S: Final = 1.0


class Kubelet:
    """Its own hands, as far as grants and the guard must know them."""

    def __init__(self, resources: PodResources, root: Path) -> None:
        self._resources = resources
        self._record, self._claims, self._logs = root / CHECKPOINT, root / CLAIMS, root / LOGS
        self._stamps: tuple[_Stamp, _Stamp] | None = None
        self._uses: Sequence[DeviceUse] = ()

    async def served(self, request: CreateRequest) -> frozenset[CardId] | None:
        """The cards that kubelet gave this container; None where that is unknown."""
        wanted = (request.namespace, request.pod, request.container)
        try:
            containers = await self._resources.served()
        except CriError:
            return self._written_down(request)
        for each in containers:
            if (each.namespace, each.pod, each.container) == wanted:
                return card_ids(each.devices)
        return self._written_down(request)

    def _written_down(self, request: CreateRequest) -> frozenset[CardId] | None:
        uses = recorded_uses(self._record)
        if uses is None:
            return None
        return card_ids(
            device
            for use in uses
            if (use.pod_uid, use.container) == (request.uid, request.container)
            for device in use.devices
        )

    async def require_ours(self, grants: Sequence[GpuGrant], part: GpuPart | None) -> None:
        """Refuses grants on cards that kubelet gave away. To be called once the grants are reserved.

        Where neither the device manager nor DRA has written anything since kubelet was asked last, nothing was given
        since: two looks at files, and no question. A yes may rest on an old answer, a no on one asked for just now.
        """
        try:
            require_ours(grants, await self._given(fresh=False), part)
        except NoRoom:  # as far as an old answer can say
            require_ours(grants, await self._given(fresh=True), part)

    async def _given(self, *, fresh: bool) -> Sequence[DeviceUse]:
        try:
            stamps = _stamp(self._record), _stamp(self._claims)  # older than the answer, so never taken for a newer one
            if fresh or stamps != self._stamps:
                self._uses = await self._asked(has_claims=stamps[1] is not None)
                self._stamps = stamps
        except (OSError, CriError) as error:
            raise NodeNotReady(_UNKNOWN) from error
        return self._uses

    async def _asked(self, *, has_claims: bool) -> Sequence[DeviceUse]:
        recorded = recorded_uses(self._record) if self._record.exists() else ()
        if recorded == () and not has_claims:
            return ()
        served = await self._resources.served()
        return device_uses(served, recorded or (), pods_by_uid(self._logs) if recorded else {})


class KubeletSign:
    """A file whose time is when kubelet last asked for the runtime's status, which it does every five seconds.

    The advertiser reads it: a node whose kubelet was pointed elsewhere takes no shared pods.
    """

    def __init__(self, path: Path, *, failed: Callable[[OSError], None]) -> None:
        self._path = path
        self._failed = failed
        self._noted_s = float("-inf")

    def note(self, method: str) -> None:
        """To be called with the method of every call."""
        if method != STATUS:
            return
        now = time.monotonic()
        if now - self._noted_s < _SIGN_EVERY_S:
            return
        self._noted_s = now
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._path.touch(mode=0o644)
        except OSError as error:
            self._failed(error)


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except FileNotFoundError:  # no device plugin, no driver was ever here
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
