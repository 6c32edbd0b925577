"""Events on SharePods, for those who type `kubectl describe sharepod`. Too many are dropped; the status says it too."""

from __future__ import annotations

import asyncio
from typing import Final, Literal

from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, EventWriter, ObjectReference, Occurrence
from partage_scheduler.sharepods.objects import GROUP_VERSION, KIND, SharePod

COMPONENT: Final = "partage-sharepods"
_MOST_WAITING: Final = 1_000


class Herald:
    def __init__(self, server: ApiServer, *, instance: str) -> None:
        self._waiting: asyncio.Queue[Occurrence] = asyncio.Queue(_MOST_WAITING)
        self._writer = EventWriter(server, component=COMPONENT, instance=instance, first_s=0.5, most_s=15.0)
        self._repeats = Repeats(every_s=60)

    def tell(self, share: SharePod, type_: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        about = ObjectReference(
            kind=KIND, api_version=GROUP_VERSION, namespace=share.namespace, name=share.name, uid=share.metadata.uid
        )
        try:
            self._waiting.put_nowait(Occurrence.of(about, type_, reason, message, "Synchronizing"))
        except asyncio.QueueFull:
            self._repeats.say("events on SharePods are dropped: the API server takes them too slowly")

    async def run(self) -> None:
        """Sends what waits, for ever."""
        while True:
            outcome = await self._writer.write(await self._waiting.get(), in_series=True)
            if outcome == "dropped":
                self._repeats.say("an event on a SharePod was not taken")
