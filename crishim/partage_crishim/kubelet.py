"""kubelet on this node: the cards that it allocated itself, and the file that shows that it talks through crishim.

Its allocations are read from the PodResources service and from the device manager's checkpoint. PodResources omits init
containers that end before the others start. The device manager records those too, when it allocates and so before their
create, in a file that only root can read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from partage_base.cri import CHECKPOINT, CreateRequest, CriError, PodResources, recorded_uses
from partage_base.cri.device_uses import LOGS, device_uses, pods_by_uid
from partage_crishim.decisions import STATUS
from partage_crishim.rules.device_plugin import require_ours
from partage_crishim.rules.errors import NodeNotReady, NoRoom
from partage_crishim.rules.guard import card_ids
from partage_plugins.api import CardId, GpuGrant, GpuPart
from partage_plugins.api.node import DeviceUse

CLAIMS: Final = "var/lib/kubelet/dra_manager_state"
"""kubelet's record of DRA allocations; only its file status is read here."""
_Stamp = tuple[int, int, int, int] | None
_UNKNOWN: Final = (
    "partage: kubelet does not say which cards it gave away by itself, so none of them is shared now; kubelet tries "
    "again"
)
_SIGN_EVERY_S: Final = 1.0


class Kubelet:
    """kubelet's own device allocations, as needed by grants and the device filter."""

    def __init__(self, resources: PodResources, root: Path) -> None:
        self._resources = resources
        self._record, self._claims, self._logs = root / CHECKPOINT, root / CLAIMS, root / LOGS
        self._stamps: tuple[_Stamp, _Stamp] | None = None
        self._uses: Sequence[DeviceUse] = ()

    async def served(self, request: CreateRequest) -> frozenset[CardId] | None:
        """The cards that kubelet allocated to this container; None if unknown."""
        wanted = (request.namespace, request.pod, request.container)
        try:
            containers = await self._resources.served()
        except CriError:
            containers = ()
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
        """Refuse grants on cards that kubelet allocated itself. Call this after the grants are reserved.

        If neither the device manager nor DRA has written since the last query, nothing was allocated since: two stat
        calls and no query. Grants may be accepted on a cached answer, but are refused only on a fresh one.
        """
        try:
            require_ours(grants, await self._given(fresh=False), part)
        except NoRoom:  # the cached answer may be old: confirm with a fresh one
            require_ours(grants, await self._given(fresh=True), part)

    async def _given(self, *, fresh: bool) -> Sequence[DeviceUse]:
        try:
            stamps = _stamp(self._record), _stamp(self._claims)  # before the query, so never newer than its answer
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
    """A file whose mtime is kubelet's last Status call, which it makes every five seconds.

    The advertiser reads it: a node whose kubelet uses another socket takes no shared pods.
    """

    def __init__(self, path: Path, *, failed: Callable[[OSError], None]) -> None:
        self._path = path
        self._failed = failed
        self._noted_s = float("-inf")

    def note(self, method: str) -> None:
        """Record a call; must be called with the method of every call."""
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
    except FileNotFoundError:  # no device plugin or DRA driver was ever here
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
