"""What kubelet gave away by itself: its PodResources service, and its device manager's own record.

The service leaves out init containers that end before the others start, so for containers that it does not name the
record counts. That one forgets nothing until a device is needed again, and knows pods by their uid alone: the folders
of logs say which pods those are, and the service, whether they have ended.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final

import structlog

from partage_base.cri import CHECKPOINT, CriError, PodResources, recorded_uses
from partage_base.daemon.logs import Repeats
from partage_plugins.vocabulary.node import DeviceUse

LOGS: Final = "var/log/pods"
"""For each pod that has a container kubelet makes a folder here, named NAMESPACE_NAME_UID."""
_Pod = tuple[str, str]
_log = structlog.get_logger()


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
        alive = {(each.namespace, each.pod) for each in served}
        return uses + [use for use in self._recorded(alive) if (use.resource, use.device) not in named]

    def _recorded(self, alive: AbstractSet[_Pod]) -> Iterator[DeviceUse]:
        recorded = recorded_uses(self._checkpoint) or ()
        pods = self._by_uid() if recorded else {}
        for use in recorded:
            namespace, pod = pods.get(use.pod_uid, ("", ""))
            if (namespace, pod) in alive:
                for device in use.devices:
                    yield DeviceUse(
                        resource=use.resource, device=device, namespace=namespace, pod=pod, container=use.container
                    )

    def _by_uid(self) -> dict[str, _Pod]:
        try:
            names = [path.name.split("_") for path in self._logs.iterdir()]
        except OSError as error:
            if (silent := self._repeats.due("logs")) is not None:
                _log.warning("init containers can't be told: no folders of pods' logs", why=str(error), repeats=silent)
            return {}
        return {parts[2]: (parts[0], parts[1]) for parts in names if len(parts) == 3}  # noqa: PLR2004  see above
