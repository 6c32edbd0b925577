"""Events on the Node object, for `kubectl describe node`.

They are best effort: an event that the API server does not accept soon is dropped and counted, not kept. The same
message about the same object is sent only once per interval, however often it occurs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import structlog

from partage_advertiser.condition_changes import ConditionChange
from partage_base.daemon.logs import Repeats
from partage_base.kube import ApiServer, EventWriter, ObjectReference, Occurrence

COMPONENT: Final = "partage-advertiser"
_MOST_WAITING: Final = 64
_AGAIN_S: Final = 5.0
_MOST_AGAIN_S: Final = 20.0
_log = structlog.get_logger()


def logged(happening: ConditionChange) -> None:
    log = _log.warning if happening.type == "Warning" else _log.info
    log("something happened on this node", reason=happening.reason, what=happening.message)


class Events:
    def __init__(
        self,
        server: ApiServer,
        node: str,
        *,
        sent: Callable[[str], None],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._node = ObjectReference(kind="Node", name=node, uid=node)  # as kubelet does for its own Events
        self._sent = sent
        self._waiting: asyncio.Queue[ConditionChange] = asyncio.Queue(_MOST_WAITING)
        self._repeats = Repeats(every_s=300)
        self._writer = EventWriter(
            server, component=COMPONENT, instance=node, first_s=_AGAIN_S, most_s=_MOST_AGAIN_S, sleep=sleep
        )

    def tell(self, happening: ConditionChange) -> None:
        """Queue an event; it is logged at once."""
        logged(happening)
        if self._repeats.due(happening) is None:
            return
        try:
            self._waiting.put_nowait(happening)
        except asyncio.QueueFull:
            self._sent("dropped")

    async def run(self) -> None:
        """Send queued events until cancelled."""
        while True:
            what = await self._waiting.get()
            self._sent(
                await self._writer.write(
                    Occurrence.of(self._node, what.type, what.reason, what.message, action=what.reason)
                )
            )
