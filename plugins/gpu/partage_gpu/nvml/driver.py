"""The parent's side of the child process that loads NVML: queries it, and kills it when it does not answer.

A child process rather than a thread: a thread that hangs in the driver can't be ended, a library stays loaded at its
old version after a driver upgrade, and an open device node keeps the driver's module from being unloaded. May be used
from any thread. Results are interpreted elsewhere.

A child that is silent for a whole deadline is killed. One whose calls return slowly continues: its answer comes later,
and calls `wake`. A child that can't be killed is abandoned; with two of these, no other is started.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec.structs import replace

from partage_gpu.nvml import process, wire
from partage_gpu.nvml.backoff import Backoff
from partage_gpu.nvml.conversation import Conversation
from partage_gpu.nvml.facts import CardFacts, Look, NodeFacts, Sample, SilentCard, Trouble, Xid
from partage_gpu.nvml.process import ChildProcess

_START_S: Final = 30.0
"""Timeout for a child that has not found its cards yet: waking an idle card takes seconds."""
_SOON_S: Final = 8.0
"""After this time, a child that has not found its cards yet is reported with the trouble that ended the previous
one."""
_SLOW_S: Final = 30.0
"""Timeout for a child whose calls return."""
_ANEW_S: Final = 60.0
"""How often the child is replaced on a node with a silent card: NVML finds a card that was reset only at its start."""
_SILENT_PART: Final = 0.9
"""Fraction of the deadline: a child that was queried just after its look began was not silent for all of it."""
_MOST_LEFT: Final = 1
"""Killed children that have not died."""
_MOST_XIDS: Final = 1000
_LET_GO: Final = Trouble(kind="failed", sentence="the driver was let go while it was asked")
_STARTS: Final = Trouble(kind="starts", sentence="the NVIDIA driver has not found its cards yet")
_BUSY: Final = Trouble(kind="hangs", sentence="the NVIDIA driver is being asked already and has not answered yet")
_log: Final = logging.getLogger(__name__)
Child = ChildProcess[wire.Question, wire.Told]


class Driver:
    """NVML in a child process."""

    def __init__(self, driver_root: Path, *, wake: Callable[[], None], look_deadline_s: float = 2.0) -> None:
        """`wake` is called in one of our threads when a look would show a change; it must not call `look` itself."""
        self._driver_root = driver_root
        self._wake, self._deadline_s = wake, look_deadline_s
        self._turn = threading.Lock()  # held during a look
        self._lock = threading.Lock()  # guards the following; its holder never waits for a child, except for its end
        self._child: Conversation[Child] | None = None
        self._left: list[Child] = []
        self._starting = Backoff()
        self._trouble = Trouble(kind="failed", sentence="the driver was not asked yet")
        self._times_let_go = 0
        self._is_closed = False
        self._known: NodeFacts | None = None
        self._is_one_silent = False
        self._xids: list[Xid] = []
        self._noting = threading.Lock()  # guards `_xids`; never held while waiting for the child's thread
        self._measuring = threading.Lock()

    @property
    def pid(self) -> int | None:
        """The child's pid, while there is one."""
        child = self._child
        return child.process.pid if child else None

    def look(self) -> Look:
        """The current facts, within the deadline; starts the child if need be."""
        until = time.monotonic() + self._deadline_s
        if not self._turn.acquire(timeout=self._deadline_s):
            return _BUSY
        try:
            return self._remembered(self._looked(until))
        finally:
            self._turn.release()

    def xids(self) -> tuple[Xid, ...]:
        """The driver's errors since the last call."""
        with self._noting:
            told, self._xids = tuple(self._xids), []
        return told

    def samples(self) -> tuple[Sample, ...]:
        """The cards' current measurements; empty if the driver does not answer in time. Starts no child."""
        with self._measuring:
            child = self._child
            answer = child.ask(wire.AskSamples(), time.monotonic() + self._deadline_s) if child else None
        return answer.samples if isinstance(answer, wire.Sampled) else ()

    def let_go(self) -> None:
        """Kills the child, so that no library is mapped and no device node is open.

        A look in progress fails. A later one starts another child.
        """
        with self._lock:
            self._times_let_go += 1
            self._starting.forget()
            self._end_all()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._end_all()

    # ---- Looking -----------------------------------------------------------------------------------------------------

    def _looked(self, until: float) -> Look:
        times_let_go = self._times_let_go
        while True:
            child = self._running(times_let_go, until)
            if isinstance(child, Trouble):
                return child
            answer = child.ask(wire.AskSnapshot(), until)
            if isinstance(answer, wire.SnapshotTaken):
                return answer.facts
            if not child.is_over:
                return self._unanswered(child)

    def _running(self, times_let_go: int, until: float) -> Conversation[Child] | Trouble:
        """The child; started if there is none and a restart is due."""
        if not self._lock.acquire(timeout=max(0.0, until - time.monotonic())):
            return _BUSY
        try:
            if self._is_closed or times_let_go != self._times_let_go:
                return _LET_GO
            self._forget_ended()
            return self._child or self._start()
        finally:
            self._lock.release()

    def _forget_ended(self) -> None:
        child = self._child
        if child is None:
            return
        if child.is_over:
            self._failed(child, child.trouble)
        elif self._is_one_silent and time.monotonic() - child.process.started > _ANEW_S:
            self._kill_child()

    def _start(self) -> Conversation[Child] | Trouble:
        self._left = [child for child in self._left if not child.is_dead]
        now = time.monotonic()
        if not self._starting.may_start(now) or len(self._left) > _MOST_LEFT:
            return self._trouble
        try:
            self._child = Conversation(self._begin, reported=self._reported, wake=self._woken)
        except (OSError, RuntimeError) as error:  # out of processes, descriptors or threads
            sentence = f"cannot start the process that asks the NVIDIA driver: {error}"
            self._trouble = Trouble(kind="failed", sentence=sentence)
            self._starting.failed("failed", started=now, now=now)
            return self._trouble
        return self._child

    def _unanswered(self, child: Conversation[Child]) -> Trouble:
        """Handles a missing answer of a live child."""
        now = time.monotonic()
        age_s, waited_s, silent_s = now - child.process.started, child.waited_s(now), child.silent_s(now)
        if not child.is_ready and age_s < _START_S:
            return self._trouble if self._starting.has_failed and age_s > _SOON_S else _STARTS
        if child.is_ready and silent_s < _SILENT_PART * self._deadline_s and waited_s < _SLOW_S:
            return Trouble(kind="slow", sentence=f"the NVIDIA driver is slow: no answer for {waited_s:.0f} s")
        trouble = Trouble(kind="hangs", sentence=f"the NVIDIA driver hangs: no call returned for {silent_s:.0f} s")
        with self._lock:
            if self._child is child:
                self._failed(child, trouble)
        return trouble

    def _remembered(self, look: Look) -> Look:
        if isinstance(look, Trouble):
            return look
        self._is_one_silent = bool(look.silent)
        self._known = with_known(look, self._known)
        return self._known

    def _begin(self, *, hears: Callable[[wire.Told], None], ends: Callable[[str], None]) -> Child:
        return Child((*process.COMMAND, str(self._driver_root)), wire.WORDS, hears=hears, ends=ends)

    # ---- Its end -----------------------------------------------------------------------------------------------------

    def _failed(self, child: Conversation[Child], trouble: Trouble) -> None:
        self._trouble = trouble
        self._starting.failed(trouble.kind, started=child.process.started, now=time.monotonic())
        self._kill_child()

    def _kill_child(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.kill()
            self._left.append(child.process)

    def _end_all(self) -> None:
        self._kill_child()
        for child in self._left:
            child.end()
        self._left = [child for child in self._left if not child.is_dead]

    # ---- In the child's thread ---------------------------------------------------------------------------------------

    def _reported(self, xid: Xid) -> None:
        with self._noting:
            self._xids = [*self._xids[1 - _MOST_XIDS :], xid]

    def _woken(self) -> None:
        try:
            self._wake()
        except Exception:  # noqa: BLE001  a defect elsewhere must not end the thread that hears the child
            _log.exception("wake callback failed after a change of the cards")


def with_known(now: NodeFacts, before: NodeFacts | None) -> NodeFacts:
    """The facts, with each silent card replaced by a matching card that was known before, if there is one."""
    if before is None or not now.silent:
        return now
    answering = {card.uuid for card in now.cards}
    missing = [card for card in before.cards if card.uuid not in answering]
    found, silent = list(now.cards), list[SilentCard]()
    for one in now.silent:
        known = _fitting(one, missing)
        if known is None:
            silent.append(one)
            continue
        missing.remove(known)
        found.append(replace(known, index=one.index, fault=one.fault))
    return replace(now, cards=tuple(sorted(found, key=lambda card: card.index)), silent=tuple(silent))


def _fitting(silent: SilentCard, missing: list[CardFacts]) -> CardFacts | None:
    if silent.uuid is not None:
        return next((card for card in missing if card.uuid == silent.uuid), None)
    return next((card for card in missing if card.index == silent.index), None)
