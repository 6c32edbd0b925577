"""The tasks that must live as long as the daemon: when one ends, the daemon ends, instead of living on without it.

What a service starts for a while (one request) belongs into a TaskGroup of its own; this is for its loops.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from partage_base.daemon.errors import EndedUnasked


class Tasks:
    """Starts tasks, tells when one ends by itself, and cancels them together."""

    def __init__(self, on_end: Callable[[Exception], None]) -> None:
        self._on_end = on_end
        self._running: set[asyncio.Task[None]] = set()

    def start(self, work: Coroutine[Any, Any, None], *, name: str) -> None:
        """Runs `work` until the daemon stops."""
        task = asyncio.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._ended)

    def cancel(self) -> set[asyncio.Task[None]]:
        """Asks all to end; those that are still to be waited for."""
        for task in self._running:
            task.cancel()
        return set(self._running)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception):
            error.add_note(f"It was raised in task {task.get_name()!r}.")
            self._on_end(error)
        elif not task.cancelling():
            self._on_end(EndedUnasked(f"task {task.get_name()!r} ended by itself; this is a defect, please report it"))
