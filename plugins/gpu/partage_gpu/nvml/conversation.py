"""The exchange with one child: queries with a deadline, whose answers may come later.

At most one query of each kind is open. If a caller gives up, the query stays open: a late answer is kept for the next
caller, if it calls soon.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from partage_gpu.nvml import wire
from partage_gpu.nvml.facts import Trouble, Xid

P_co = TypeVar("P_co", bound="Process", covariant=True)
_FRESH_S: Final = 5.0
_ANSWERS: Final[dict[type, type[wire.Answer]]] = {
    wire.AskSnapshot: wire.SnapshotTaken,
    wire.AskSamples: wire.Sampled,
}


class Process(Protocol):
    """The part of `ChildProcess` that is used here."""

    started: float

    def send(self, question: wire.Question) -> None: ...

    def kill(self) -> None:
        """Kills it without waiting."""
        ...


class Begin(Protocol[P_co]):
    """Starts a child, or raises OSError or RuntimeError."""

    def __call__(self, *, hears: Callable[[wire.Told], None], ends: Callable[[str], None]) -> P_co:
        """Both callbacks run in the child's thread."""
        ...


class Conversation(Generic[P_co]):
    """The exchange with one child, from its start to its end."""

    def __init__(
        self,
        begin: Begin[P_co],
        *,
        reported: Callable[[Xid], None],
        wake: Callable[[], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raises what `begin` raises. Both callbacks run in the child's thread."""
        self._reported, self._wake, self._clock = reported, wake, clock
        self._changed = threading.Condition()
        self._open: dict[type, float] = {}
        self._answers: dict[type, tuple[wire.Answer, float]] = {}
        self._waiting: list[type] = []
        self._heard = self._clock()
        self.is_ready = False
        """Whether it has found its cards."""
        self.is_over = False
        self._last_words: Trouble | None = None
        self._how_it_ended = "was ended"
        self.process = begin(hears=self._hear, ends=self._end)

    def ask(self, question: wire.Question, until: float) -> wire.Answer | None:
        """The answer, or None if there is none by then or can be none."""
        kind = _ANSWERS[type(question)]
        with self._changed:
            self._answers = {kind: one for kind, one in self._answers.items() if one[1] > self._clock() - _FRESH_S}
            if kind not in self._answers and kind not in self._open and not self.is_over:
                self._open[kind] = self._clock()
                self.process.send(question)
            self._waiting.append(kind)
            self._changed.wait_for(lambda: self.is_over or kind in self._answers, max(0.0, until - self._clock()))
            self._waiting.remove(kind)
            answer, _ = self._answers.pop(kind, (None, 0.0))
            return answer

    @property
    def trouble(self) -> Trouble:
        """Why it ended: its own last message, or else how the process ended."""
        sentence = f"the process that asks the NVIDIA driver {self._how_it_ended}"
        return self._last_words or Trouble(kind="failed", sentence=sentence)

    def waited_s(self, now: float) -> float:
        """How long the oldest open query has been open."""
        with self._changed:
            return now - min(self._open.values(), default=now)

    def silent_s(self, now: float) -> float:
        """How long it has sent nothing while a query was open."""
        return min(now - self._heard, self.waited_s(now))

    def kill(self) -> None:
        """Kills the child and ends every wait."""
        with self._changed:
            self.is_over = True
            self._changed.notify_all()
        self.process.kill()

    # ---- In the child's thread ---------------------------------------------------------------------------------------

    def _hear(self, told: wire.Told) -> None:
        self._heard = self._clock()
        match told:
            case wire.Opened():
                self.is_ready = True
            case wire.Working():
                pass
            case wire.SnapshotTaken() | wire.Sampled():
                self._answered(told)
            case wire.Changed():
                with self._changed:
                    self._answers.clear()  # they are outdated
                self._wake()
            case wire.Reported():
                self._reported(told.xid)
                self._wake()
            case wire.Ended():
                self._last_words = told.trouble

    def _answered(self, answer: wire.Answer) -> None:
        with self._changed:
            self._open.pop(type(answer), None)
            self._answers[type(answer)] = (answer, self._heard)
            self._changed.notify_all()
            is_late = type(answer) not in self._waiting
        if is_late and isinstance(answer, wire.SnapshotTaken):
            self._wake()

    def _end(self, how: str) -> None:
        with self._changed:
            self._how_it_ended = how
            self.is_over = True
            self._changed.notify_all()
            is_news = wire.SnapshotTaken not in self._waiting
        if is_news:
            self._wake()
