"""What kubelet gave away by itself: its PodResources service, and its device manager's own record.

The service leaves out init containers that end before the others start, so for containers that it does not name the
record counts, which knows pods by their uid alone: while kubelet has a folder for that pod, it has not forgotten it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import structlog

from partage_base.cri import CHECKPOINT, CriError, PodResources, RecordedUse, recorded_uses
from partage_base.daemon.repeats import Repeats
from partage_plugins.vocabulary.node import DeviceUse

PODS: Final = "var/lib/kubelet/pods"
_log = structlog.get_logger()


class Kubelet:
    """kubelet on this node."""

    def __init__(self, resources: PodResources, root: Path) -> None:
        self._resources = resources
        self._checkpoint = root / CHECKPOINT
        self._pods = root / PODS
        self._repeats = Repeats(every_s=300)

    async def in_use(self) -> list[DeviceUse] | None:
        """Everything that is in somebody's hands; None where kubelet can't be asked."""
        try:
            served = await self._resources.served()
        except CriError as error:
            if (silent := self._repeats.due()) is not None:
                _log.warning("kubelet does not say which devices it gave away", why=str(error), repeats=silent)
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
        return uses + [use for use in self._recorded() if (use.resource, use.device) not in named]

    def _recorded(self) -> Iterator[DeviceUse]:
        for use in recorded_uses(self._checkpoint) or ():
            if self._is_known(use):
                for device in use.devices:
                    yield DeviceUse(
                        resource=use.resource,
                        device=device,
                        namespace="",
                        pod=f"of uid {use.pod_uid}",
                        container=use.container,
                    )

    def _is_known(self, use: RecordedUse) -> bool:
        return "/" not in use.pod_uid and (self._pods / use.pod_uid).is_dir()
