"""A simulated card: a single active process uses all of it, several share it evenly. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf

from partage_isolation.timeslices.durations import MS
from support.lease_simulation.events import Events

BIN_NS = 100 * MS


class Meeting:
    """A collective: kernels on several cards, which spin until all of them run and then do their work."""

    __slots__ = ("_here", "_peers", "_work_ns")

    def __init__(self, peers: int, work_ns: int) -> None:
        self._peers, self._work_ns = peers, work_ns
        self._here: list[tuple[Gpu, Queue]] = []

    def arrives(self, gpu: Gpu, queue: Queue) -> None:
        self._here.append((gpu, queue))
        if len(self._here) == self._peers:
            for there, peer in self._here:
                there.meets(peer, self._work_ns)


class Queue:
    """The work that one process launched on one card, executed in order."""

    __slots__ = ("bins", "done", "meetings", "work")

    def __init__(self, bins: dict[int, float], done: Callable[[int], None]) -> None:
        self.work: deque[float] = deque()
        self.meetings: deque[Meeting | None] = deque()
        self.bins, self.done = bins, done


class Gpu:
    __slots__ = ("_active", "_at", "_events", "_plan", "overlapped_ns")

    def __init__(self, events: Events) -> None:
        self._events = events
        self._active: dict[Queue, list[int]] = {}
        self._at = events.now
        self._plan = 0
        self.overlapped_ns = 0

    def launch(self, queue: Queue, work_ns: int, meeting: Meeting | None = None) -> None:
        queue.meetings.append(meeting)
        if queue.work:
            queue.work.append(inf if meeting else work_ns)
            return
        self._advance()
        queue.work.append(inf if meeting else work_ns)
        self._active[queue] = []
        self._plan_next()
        if meeting:
            meeting.arrives(self, queue)

    def meets(self, queue: Queue, work_ns: int) -> None:
        """All peers of the queue's first kernel run now."""
        self._advance()
        if queue.work:
            queue.work[0] = work_ns
            self._plan_next()

    def forget(self, queue: Queue) -> None:
        self._advance()
        queue.work.clear()
        queue.meetings.clear()
        self._active.pop(queue, None)
        self._plan_next()

    def _advance(self) -> None:
        now, since = self._events.now, self._at
        self._at = now
        count = len(self._active)
        if now == since or not count:
            return
        part = (now - since) / count
        if count > 1 and len({id(queue.bins) for queue in self._active}) > 1:
            self.overlapped_ns += now - since
        for queue in self._active:
            queue.work[0] -= part
            _book(queue.bins, since, now, 1 / count)

    def _plan_next(self) -> None:
        self._plan += 1
        if self._active:
            plan, count = self._plan, len(self._active)
            least = min(queue.work[0] for queue in self._active)
            if least < inf:
                self._events.at(self._events.now + max(0, round(least * count)), lambda: self._complete(plan))

    def _complete(self, plan: int) -> None:
        if plan != self._plan:
            return
        self._advance()
        ended = [queue for queue in self._active if queue.work[0] < 1]
        for queue in ended:
            queue.work.popleft()
            queue.meetings.popleft()
            if not queue.work:
                del self._active[queue]
        self._plan_next()
        for queue in ended:
            if queue.meetings and (meeting := queue.meetings[0]):
                meeting.arrives(self, queue)
            queue.done(self._events.now)


def _book(bins: dict[int, float], start: int, end: int, part: float) -> None:
    while start < end:
        number = start // BIN_NS
        until = min(end, (number + 1) * BIN_NS)
        bins[number] = bins.get(number, 0.0) + (until - start) * part
        start = until
