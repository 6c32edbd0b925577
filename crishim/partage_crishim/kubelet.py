"""kubelet on this node: what it gave a container by itself, and the sign that it speaks through crishim.

What it gave is known from its PodResources service and from its device manager's own record.

PodResources leaves out init containers that end before the others start. The device manager records those too, when it
allocates and so before their create, in a file that only root reads. The file is read for them alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.cri import CreateRequest, CriError, PodResources, recorded_uses
from partage_crishim.rules.guard import card_ids
from partage_crishim.verdicts import STATUS
from partage_plugins.vocabulary import CardId

_SIGN_EVERY_S: Final = 1.0


class Kubelet:
    def __init__(self, resources: PodResources, checkpoint: Path) -> None:
        self._resources = resources
        self._checkpoint = checkpoint

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
        uses = recorded_uses(self._checkpoint)
        if uses is None:
            return None
        return card_ids(
            device
            for use in uses
            if (use.pod_uid, use.container) == (request.uid, request.container)
            for device in use.devices
        )


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
