"""What kubelet gave a container by itself: its PodResources service, and its device manager's own record.

PodResources leaves out init containers that end before the others start; the device manager writes those down too, when
it allocates and so before their create, in a file that only root reads. It is looked at for them alone.
"""

from __future__ import annotations

from pathlib import Path

from partage_base.cri import CreateRequest, CriError, PodResources, recorded_uses
from partage_crishim.rules.guard import card_ids
from partage_plugins.vocabulary import CardId


class Kubelet:
    """kubelet on this node."""

    def __init__(self, resources: PodResources, checkpoint: Path) -> None:
        self._resources = resources
        self._checkpoint = checkpoint

    async def served(self, request: CreateRequest) -> frozenset[CardId] | None:
        """The cards that kubelet gave this container; None where nobody can tell."""
        wanted = (request.namespace, request.pod, request.container)
        try:
            containers = await self._resources.served()
        except CriError:
            return None
        for each in containers:
            if (each.namespace, each.pod, each.container) == wanted:
                return card_ids(each.devices)
        return self._written_down(request)

    def _written_down(self, request: CreateRequest) -> frozenset[CardId] | None:
        uses = recorded_uses(self._checkpoint)
        if uses is None:
            return None
        return card_ids(
            device
            for use in uses
            if (use.pod_uid, use.container) == (request.uid, request.container)
            for device in use.devices
        )
