"""Events on the Node object, for those who type `kubectl describe node`.

They are a courtesy: what the API server does not take soon is dropped and counted, never kept for ever. The same words
about the same thing are sent once in a while, however often it happens.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Final

import msgspec
import structlog

from partage_advertiser.happenings import Happening
from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    ApiServer,
    Backoff,
    KubeError,
    Meta,
    NodeEvent,
    ObjectReference,
    events_path,
    micro_time,
)

COMPONENT: Final = "partage-advertiser"
NAMESPACE: Final = "default"
"""Where events about objects without a namespace belong."""
_MOST_WAITING: Final = 64
_TRIES: Final = 3
_AGAIN_S: Final = 5.0
_MOST_AGAIN_S: Final = 20.0
_LONGEST_MESSAGE: Final = 1024
_log = structlog.get_logger()


class Events:
    def __init__(
        self,
        server: ApiServer,
        node: str,
        *,
        sent: Callable[[str], None],
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._server = server
        self._node = node
        self._sent, self._sleep = sent, sleep
        self._waiting: asyncio.Queue[Happening] = asyncio.Queue(_MOST_WAITING)
        self._repeats = Repeats(every_s=300)
        self._backoff = Backoff(first_s=_AGAIN_S, most_s=_MOST_AGAIN_S, random=random.random)

    def tell(self, happening: Happening) -> None:
        """Soon; also in the log, at once."""
        log = _log.warning if happening.type == "Warning" else _log.info
        log("something happened on this node", reason=happening.reason, what=happening.message)
        if self._repeats.due(happening) is None:
            return
        try:
            self._waiting.put_nowait(happening)
        except asyncio.QueueFull:
            self._sent("dropped")

    async def run(self) -> None:
        """Sends what waits, for ever."""
        while True:
            happening = await self._waiting.get()
            self._sent(await self._send(_event(self._node, happening, datetime.now(UTC))))

    async def _send(self, event: NodeEvent) -> str:
        for _ in range(_TRIES):
            try:
                await self._server.create(events_path(NAMESPACE), event, msgspec.Raw)
            except KubeError as error:
                _log.debug("an event was not taken", why=str(error))
                await self._sleep(self._backoff.after(error))
            else:
                self._backoff.reset()
                return "sent"
        return "dropped"


def _event(node: str, happening: Happening, now: datetime) -> NodeEvent:
    """As kubelet writes its own, whose uid of a node is its name."""
    return NodeEvent(
        metadata=Meta(generate_name=f"{node}.", namespace=NAMESPACE),
        involved_object=ObjectReference(kind="Node", name=node, uid=node),
        type=happening.type,
        reason=happening.reason,
        action=happening.reason,
        message=happening.message[:_LONGEST_MESSAGE],
        event_time=micro_time(now),
        reporting_component=COMPONENT,
        reporting_instance=node,
        count=1,
    )
