"""Cards that kubelet gave to containers by itself: asked before a container with a grant goes on.

Where neither the device manager nor DRA has written anything since kubelet was asked last, nothing was given since: two
looks at files, and no question. A yes may rest on an old answer, a no rests on one that was asked for just now.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from partage_base.cri import CHECKPOINT, CriError, PodResources, recorded_uses
from partage_base.cri.device_uses import LOGS, device_uses, pods_by_uid
from partage_crishim.rules.errors import NodeNotReady, NoRoom
from partage_crishim.rules.natives import require_ours
from partage_plugins.vocabulary import GpuGrant, GpuPart
from partage_plugins.vocabulary.node import DeviceUse

CLAIMS: Final = "var/lib/kubelet/dra_manager_state"
"""kubelet's record of what DRA drivers gave; its form is not needed here."""
_Stamp = tuple[int, int, int, int] | None
_UNKNOWN: Final = (
    "partage: kubelet does not say which cards it gave away by itself, so none of them is shared now; kubelet tries "
    "again"
)


class Natives:
    """kubelet's own hands, as far as grants must know them."""

    def __init__(self, resources: PodResources, root: Path) -> None:
        self._resources = resources
        self._record, self._claims, self._logs = root / CHECKPOINT, root / CLAIMS, root / LOGS
        self._stamps: tuple[_Stamp, _Stamp] | None = None
        self._uses: Sequence[DeviceUse] = ()

    async def require_ours(self, grants: Sequence[GpuGrant], part: GpuPart | None) -> None:
        """Refuses grants on cards that kubelet gave away. To be called once the grants are reserved."""
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


def _stamp(path: Path) -> _Stamp:
    try:
        status = path.stat()
    except FileNotFoundError:  # no device plugin, no driver was ever here
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
