"""Runs calls that may block indefinitely in threads of their own, which block neither the loop nor process exit."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """Run a call; the future has its result or exception."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def answered(answer: T) -> None:
        if not future.done():
            future.set_result(answer)

    def failed(error: Exception) -> None:
        if not future.done():
            future.set_exception(error)

    def run() -> None:
        try:
            answer = call()
        except Exception as error:  # noqa: BLE001  the caller that waits gets it
            soon(loop, failed, error)
        else:
            soon(loop, answered, answer)

    threading.Thread(target=run, name="partage-look", daemon=True).start()
    return future


def soon(loop: asyncio.AbstractEventLoop, call: Callable[P, object], *arguments: P.args, **named: P.kwargs) -> None:
    """Call in the loop, from any thread; ignored if the loop is closed."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(partial(call, *arguments, **named))
