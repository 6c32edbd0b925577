"""Innocents of the highest priority, for the cards of one node: all others there have to leave for them.

Nobody terminates evicted pods on made-up nodes, so this module does, at the time that the API server names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from partage_base.kube import ApiServer, pods_path
from partage_plugins.api.keys import GPU_MILLI
from partage_scheduler.objects import ApiPod
from rig.client.manifests import a_pod
from rig.client.resources import Json
from soak.siege.errands import Errands
from soak.siege.innocents import NAMESPACE
from soak.siege.places import ARENA, REAL, only_on
from soak.siege.verdicts import Verdict, Wrong

CLASS: Final = "urgent"
PRIORITY_CLASS: Final[Json] = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": CLASS},
    "value": 1_000_000,
}
FOR_NOBODY: Final[Json] = {
    "hard": {"pods": "0"},
    "scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": [CLASS]}]},
}
"""The quota of a namespace whose pods may not be urgent."""
EVERY_S: Final = 4.0
LIFE_S: Final = 2.0
SOON_S: Final = 3600.0
"""Pods that are to end later than this stay for the whole soak."""


class Urgent:
    """All of them, and the termination of pods on made-up nodes."""

    def __init__(self, server: ApiServer) -> None:
        self._server, self._errands = server, Errands(server)
        self._number = 0
        self._waiting: set[str] = set()
        self._ending: dict[str, str] = {}
        self.placed = 0

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    async def come(self) -> None:
        """Create them one after the other, until cancelled."""
        spec = {"priorityClassName": CLASS, **only_on(ARENA)}
        while True:
            self._number += 1
            body = a_pod(
                f"{CLASS}-{self._number}", scheduler="partage-scheduler", limits={GPU_MILLI: "1000"}, spec=spec
            )
            await self._server.create(pods_path(NAMESPACE), body, msgspec.Raw)
            await asyncio.sleep(EVERY_S)

    def told(self, pod: ApiPod) -> None:
        if pod.namespace == NAMESPACE and pod.name.startswith(CLASS):
            self._note(pod)
        ends = pod.metadata.deletion_timestamp
        if ends is None or pod.node in REAL or self._ending.get(pod.uid) == ends:
            return
        self._ending[pod.uid] = ends
        left_s = datetime.fromisoformat(ends).timestamp() - datetime.now(UTC).timestamp()
        if left_s < SOON_S:
            self._errands.delete(pod, after_s=max(0.0, left_s))

    def gone(self, pod: ApiPod) -> None:
        self._ending.pop(pod.uid, None)
        self._waiting.discard(pod.uid)

    def wrong(self) -> Iterator[Wrong]:
        if self._waiting:
            yield Wrong(Verdict.URGENT, f"{len(self._waiting)} urgent pods, of {self._number}, found no room")

    def _note(self, pod: ApiPod) -> None:
        if not pod.node:
            self._waiting.add(pod.uid)
        elif pod.uid in self._waiting:
            self._waiting.remove(pod.uid)
            self.placed += 1
            self._errands.delete(pod, after_s=LIFE_S)
