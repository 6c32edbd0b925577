"""Waits for events that must happen, for as long as `rig.patience` allows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Final, TypeVar

from rig.patience import PATIENCE_S, Logged, Wait, What, in_vain

__all__ = ["PATIENCE_S", "found", "patient", "until"]
T = TypeVar("T")
_LOOK_EVERY_S: Final = 0.05
_SELDOM: Final = 4
"""Polling costs the polled component, too: after a while the interval grows by this factor."""


def until(
    what: What,
    why_not: Callable[[], str | None],
    within_s: float = PATIENCE_S,
    *,
    every_s: float = _LOOK_EVERY_S,
    logs: Iterable[Logged] = (),
) -> None:
    """Wait until `why_not` returns None. It may raise `NeverHappened` itself if the event can't happen any more."""
    wait, began = Wait(within_s), time.monotonic()
    is_over = False
    while (why := why_not()) is not None:
        if is_over:
            raise in_vain(what, why, wait, logs)
        is_over = not wait.left_s()  # then it looks once more, as it may itself have been delayed
        time.sleep(min(max(every_s, (time.monotonic() - began) / 20), _SELDOM * every_s))


def found(
    what: What,
    look: Callable[[], T | None],
    within_s: float = PATIENCE_S,
    *,
    every_s: float = 0.005,
    logs: Iterable[Logged] = (),
) -> T:
    """The first truthy result of `look`."""
    answers: list[T] = []

    def why_not() -> str | None:
        if answer := look():
            answers.append(answer)
            return None
        return repr(answer)

    until(what, why_not, within_s, every_s=every_s, logs=logs)
    return answers[0]


@asynccontextmanager
async def patient(
    what: What,
    within_s: float = PATIENCE_S,
    *,
    seen: Callable[[], object] = lambda: "nothing",
    logs: Iterable[Logged] = (),
) -> AsyncGenerator[None]:
    """Limits the time of what is awaited inside; `seen` describes its progress for the error."""
    wait, limit = Wait(within_s), asyncio.timeout(None)
    try:
        async with limit:
            timer = _Timer(wait, limit)
            try:
                yield
            finally:
                timer.stop()
    except TimeoutError:
        if limit.expired():
            raise in_vain(what, seen(), wait, logs) from None
        raise


class _Timer:
    """Checks the wait again whenever it could be over."""

    def __init__(self, wait: Wait, limit: asyncio.Timeout) -> None:
        self._wait, self._limit = wait, limit
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_later(wait.left_s(), self._look)

    def stop(self) -> None:
        self._next.cancel()

    def _look(self) -> None:
        if left_s := self._wait.left_s():
            self._next = self._loop.call_later(left_s + _LOOK_EVERY_S, self._look)
        else:
            self._limit.reschedule(self._loop.time() + _LOOK_EVERY_S)  # time to process what has arrived
