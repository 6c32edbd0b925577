"""Begins a coroutine before it is waited for, so that its caller can do something else first.

A task would begin with the next turn of the loop. Between `begin` and the wait, its caller must wait for nothing else:
what the coroutine set up around its own first wait, such as a deadline, would strike there.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Ahead(Generic[T]):
    """A coroutine that is made when it is begun."""

    def __init__(self, work: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = work
        self._work: Coroutine[Any, Any, T] | None = None
        self._waits_for: object = None
        self._ended: tuple[T] | None = None

    @property
    def has_begun(self) -> bool:
        """Whether anything of it was done."""
        return self._work is not None

    def begin(self) -> None:
        """Runs it up to its first wait; raises what it raises by then."""
        self._work = self._make()
        self._step(self._work.send, None)

    def __await__(self) -> Generator[Any, Any, T]:
        """The result, once; to be waited for by the task that began it."""
        if self._work is None:
            raise RuntimeError("it was not begun")
        while self._ended is None:
            try:
                came = yield self._waits_for
            except BaseException as error:  # noqa: BLE001  a cancellation, too, is the coroutine's to deal with
                self._step(self._work.throw, error)
            else:
                self._step(self._work.send, came)
        return self._ended[0]

    def close(self) -> None:
        """Nobody will wait for it any more."""
        if self._work is not None:
            self._work.close()

    def _step(self, go_on: Callable[[Any], object], value: object) -> None:
        try:
            self._waits_for = go_on(value)
        except StopIteration as end:
            self._ended = (end.value,)
