"""The parent's side of the child process that calls NVML: an `Nvml` and a `Limiter` for the broker's loop.

One request is outstanding for each card. Later callers share the next request, since the outstanding one may have begun
before what they ask about. Nothing is cached.

A child that dies is restarted immediately the first time, then with growing delays; one that is silent for too long is
killed; one that can't be killed is left behind, and while there are two of those no other is started. While the driver
must be released there is no child and no result.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog

from partage_base.daemon.logs import Repeats
from partage_gpu.nvml.backoff import Backoff
from partage_gpu.nvml.facts import TroubleKind
from partage_gpu.nvml.process import ChildProcess
from partage_gpu.nvml.wire import Ended
from partage_isolation.audit.facts import Blind, CardUse, Sample
from partage_isolation.audit.nvml_messages import (
    LONGEST_TEXT,
    WORDS,
    AskLimit,
    AskUse,
    BrokerReport,
    CardRefused,
    Limited,
    Question,
    Ready,
    Unseen,
    Used,
)
from partage_isolation.audit.threads import soon
from partage_isolation.urgency import goes_as_others
from partage_plugins.api.names import CardId

CHILD: Final = "partage_isolation.audit.nvml_child"
_START_S: Final = 30.0
"""Timeout for a child that has not opened the driver yet: initializing an unused card takes seconds."""
_ANEW_S: Final = 30.0
"""Interval for retrying a refused card with a fresh child: only that lets NVML find a card that came back."""
_MOST_LEFT: Final = 1
"""Limit of killed children that have not exited."""
_log: Final = structlog.get_logger()
_Asked = asyncio.Future[Sample | None]
_Child = ChildProcess[Question, BrokerReport]


class NvmlChild:
    """NVML in another process. Used from the loop only."""

    def __init__(
        self,
        driver_root: Path,
        *,
        deadline_s: float = 1.0,
        silent_s: float = 10.0,
        paused: Callable[[], bool] = lambda: False,
    ) -> None:
        """`silent_s` is the time after which a child that owes a response is considered hung."""
        command = (sys.executable, "-P", "-m", CHILD, str(driver_root))
        self._begin = partial(_Child, command, WORDS)
        self._deadline_s, self._silent_s, self._paused = deadline_s, silent_s, paused
        self._child: _Child | None = None
        self._left: list[_Child] = []
        self._starting = Backoff()
        self._repeats = Repeats(every_s=60)
        self._open: dict[CardId, _Asked] = {}
        self._next: dict[CardId, _Asked] = {}
        self._limits: dict[tuple[str, str], asyncio.Future[Limited]] = {}
        self._owes_since = 0.0
        self._born = object()
        self._is_ready = self._has_refused = self._is_closed = False
        self.limiting: object | None = None
        """Identifies a child whose driver supports limits: another child is another object."""

    @property
    def pid(self) -> int | None:
        return self._child.pid if self._child else None

    async def use(self, card: CardId) -> Sample | None:
        until = time.monotonic() + self._deadline_s
        while self._runs():
            question = self._question(card)
            await asyncio.wait([question], timeout=max(0.0, until - time.monotonic()))
            if not question.done():
                self._judge_silence()
                return None
            if not question.cancelled():
                return question.result()
        return None

    async def limit(self, card: CardId, group: Path, limit_bytes: int) -> Limited | None:
        """Set the driver's limit of a cgroup; None where there is no response within the deadline."""
        key = (card, str(group))
        if self.limiting is None or self._child is None or key in self._limits:
            return None
        answer = self._limits[key] = asyncio.get_running_loop().create_future()
        if not self._open and len(self._limits) == 1:
            self._owes_since = time.monotonic()
        self._child.send(AskLimit(*key, limit_bytes))
        await asyncio.wait([answer], timeout=self._deadline_s)
        self._judge_silence()
        return answer.result() if answer.done() and not answer.cancelled() else None

    def tidy(self) -> None:
        """End a child that must not run, even without requests."""
        if self._paused():
            self._let_go()

    async def close(self) -> None:
        self._is_closed = True
        self._let_go()
        await asyncio.gather(*(asyncio.to_thread(child.end) for child in self._left))

    # ---- The child ---------------------------------------------------------------------------------------------------

    def _runs(self) -> bool:
        """Whether a child runs; starts one if it is due."""
        if self._is_closed or self._paused():
            self._let_go()
            return False
        if self._child and self._has_refused and time.monotonic() - self._child.started > _ANEW_S:
            self._kill()
        return self._child is not None or self._start()

    def _start(self) -> bool:
        self._left = [child for child in self._left if not child.is_dead]
        now = time.monotonic()
        if not self._starting.may_start(now) or len(self._left) > _MOST_LEFT:
            return False
        loop, born = asyncio.get_running_loop(), object()
        self._born, self._is_ready, self._has_refused = born, False, False
        try:
            self._child = self._begin(
                hears=lambda message: soon(loop, self._hear, born, message),
                ends=lambda how: soon(loop, self._died, born, f"the process that asks NVML {how}"),
            )
        except (OSError, RuntimeError) as error:  # out of processes, descriptors or threads
            self._failed(f"the process that asks NVML cannot be started: {error}", "failed", started=now)
            return False
        goes_as_others(self._child.pid)
        self._owes_since = now
        return True

    def _judge_silence(self) -> None:
        patience_s = self._silent_s if self._is_ready else max(_START_S, self._silent_s)
        silent_s = time.monotonic() - self._owes_since
        if self._child is not None and (self._open or self._limits) and silent_s > patience_s:
            self._died(self._born, f"NVML hangs: no call returned for {silent_s:.0f} s")

    def _died(self, born: object, why: str, kind: TroubleKind = "failed") -> None:
        if self._child is not None and born is self._born:
            started = self._child.started
            self._kill()
            self._failed(why, kind, started=started)

    def _failed(self, why: str, kind: TroubleKind, *, started: float) -> None:
        self._starting.failed(kind, started=started, now=time.monotonic())
        what = "what processes hold of the cards can't be asked; it will be tried again"
        self._repeats.say(what, key=why, why=why)

    def _let_go(self) -> None:
        self._starting.forget()
        self._kill()

    def _kill(self) -> None:
        """Kill the child and cancel all requests; callers may then use another child."""
        child, self._child, self.limiting = self._child, None, None
        if child is not None:
            self._left.append(child)
            asyncio.get_running_loop().run_in_executor(None, child.kill)  # it may wait a moment for the child's thread
        for question in (*self._open.values(), *self._next.values()):
            question.cancel()
        for answer in self._limits.values():
            answer.cancel()
        self._open.clear()
        self._next.clear()
        self._limits.clear()

    # ---- Requests and responses --------------------------------------------------------------------------------------

    def _question(self, card: CardId) -> _Asked:
        if card in self._open:
            if card not in self._next:
                self._next[card] = asyncio.get_running_loop().create_future()
            return self._next[card]
        question: _Asked = asyncio.get_running_loop().create_future()
        self._send(card, question)
        return question

    def _send(self, card: CardId, question: _Asked) -> None:
        if self._child is None:
            raise RuntimeError("a question without a child")
        if not self._open and not self._limits:
            self._owes_since = time.monotonic()
        self._open[card] = question
        self._child.send(AskUse(card))

    def _hear(self, born: object, message: BrokerReport) -> None:
        if self._child is None or born is not self._born:
            return  # from a child that was killed since
        self._owes_since = time.monotonic()
        match message:
            case Ready():
                self._is_ready = True
                self.limiting = born if message.has_limits else None
            case Limited():
                answer = self._limits.pop((message.card, message.group), None)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case Used():
                card = CardId(message.card)
                self._answer(card, CardUse(card, message.taken_ns, dict(message.processes)))
            case Unseen():
                card = CardId(message.card)
                self._answer(card, Blind(card, message.taken_ns))
            case CardRefused():
                self._has_refused = True
                self._answer(CardId(message.card), None)
                self._repeats.say("NVML does not say who uses a card", key=message, card=message.card, why=message.why)
            case Ended():
                self._died(born, message.trouble.sentence[:LONGEST_TEXT], message.trouble.kind)

    def _answer(self, card: CardId, use: Sample | None) -> None:
        question = self._open.pop(card, None)
        if question is not None and not question.done():
            question.set_result(use)
        if (waiting := self._next.pop(card, None)) is not None:
            self._send(card, waiting)
