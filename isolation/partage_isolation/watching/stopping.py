"""Stops containers by the runtime, beside everything else: each once at a time, again while it goes on to run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final, Protocol

import structlog

from partage_base.cri import CriError
from partage_plugins.vocabulary.names import ContainerKey

_AGAIN_S: Final = 5.0
"""After a stop that the runtime said was done."""
_log: Final = structlog.get_logger()


class Stopper(Protocol):
    """Who can stop a container; see `Runtime`."""

    async def stop(self, container_id: str, *, grace_s: int) -> None:
        """Raises `CriError` where that can't be said to be done."""
        ...


class Stopping:
    """All stops of one broker."""

    def __init__(
        self,
        runtime: Stopper,
        *,
        grace_s: int = 1,
        stopped: Callable[[str], None] = lambda _outcome: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._runtime, self._grace_s, self._stopped, self._clock = runtime, grace_s, stopped, clock
        self._running: dict[str, asyncio.Task[None]] = {}
        self._done_s: dict[str, float] = {}

    def stop(self, key: ContainerKey, container_id: str, why: str) -> None:
        """Begins, unless that is under way or was done just now."""
        done_s = self._done_s.get(container_id)
        if container_id in self._running or (done_s is not None and self._clock() - done_s < _AGAIN_S):
            return
        task = asyncio.create_task(self._stop(key, container_id, why), name=f"stopping {container_id}")
        self._running[container_id] = task
        task.add_done_callback(lambda _: self._running.pop(container_id, None))

    async def close(self) -> None:
        """Lets go of what is under way: the next broker finds what still runs."""
        tasks = tuple(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _stop(self, key: ContainerKey, container_id: str, why: str) -> None:
        about = {"key": key, "container": container_id, "because": why}
        try:
            await self._runtime.stop(container_id, grace_s=self._grace_s)
        except CriError as error:
            self._stopped("failed")
            what = "a container whose limits are not in force can't be stopped; it is tried again"
            _log.error(what, why=str(error), **about)
            return
        self._stopped("done")
        self._done_s = {one: at for one, at in self._done_s.items() if self._clock() - at < _AGAIN_S}
        self._done_s[container_id] = self._clock()
        _log.warning("a container was stopped, since its limits were not in force", **about)
