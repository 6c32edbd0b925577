"""The scheduling loop: while pods are queued and in-flight slots are free, decides, assumes and binds.

Decisions are made one after the other, each on a cache with all earlier ones; bindings run meanwhile as tasks, and are
confirmed or undone when they end. Nothing is decided while the cache may be out of date, or another scheduler leads.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from typing import Final

import structlog

from partage_base.daemon.logs import Repeats
from partage_base.event_wait import set_within
from partage_plugins.api import Gang
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.api import Events, StatusWriter, Unplaced
from partage_scheduler.api.binder import Already, Bound, Failed, Lost, Outcome
from partage_scheduler.cluster import NOTHING, ClusterEvent
from partage_scheduler.core import Core
from partage_scheduler.cycle import SPANS_NODES, Bind, Unschedulable, spans_nodes
from partage_scheduler.metrics import Figures
from partage_scheduler.objects import ApiPod, seen
from partage_scheduler.placement.bindings import Bindings
from partage_scheduler.placement.preemptor import Preemptor
from partage_scheduler.queue import Waiting
from partage_scheduler.signatures import Signed

AGAIN: Final = frozenset((ClusterEvent.TIME,))
NOT_READ: Final = "RequestNotRead"
"""Reason of the event on a pod that mentions cards in a way that nothing reads."""
TURN_S: Final = 0.002
"""Time for decisions before other tasks run: responses, watches, the Lease, the extender's callers."""
SPARE_PART: Final = 4
"""One binding per so many may exceed the limit, for namespaces with fewer in flight than these."""
_log = structlog.get_logger()


class Worker:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        *,
        core: Core,
        bindings: Bindings,
        events: Events,
        status: StatusWriter,
        preemptor: Preemptor,
        figures: Figures,
        most_in_flight: int,
        may_decide: Callable[[], bool],
        missed: Callable[[ApiPod], None] | None = None,
    ) -> None:
        """`may_decide`: this scheduler leads and its cache is in sync.

        `missed` is called for pods that more cards may help.
        """
        self._missed = missed
        self._cluster, self._queue, self._cycle, self._pods = (
            core.cluster,
            core.queue,
            core.cycle,
            core.event_handlers.pods,
        )
        self._lexicon = core.lexicon
        self._bindings, self._events, self._status = bindings, events, status
        self._preemptor = preemptor
        self._figures, self._most_in_flight, self._may_decide = figures, most_in_flight, may_decide
        self._in_flight: set[asyncio.Task[None]] = set()
        self._of_namespace: Counter[str] = Counter()
        self._woken = asyncio.Event()
        self._failure: BaseException | None = None
        self._is_stopped = False
        self._repeats = Repeats(every_s=10)

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def tasks(self) -> Collection[asyncio.Task[None]]:
        return tuple(self._in_flight)

    def stop(self) -> None:
        self._is_stopped = True

    def wake(self) -> None:
        self._woken.set()

    async def run(self) -> None:
        while True:
            self._woken.clear()
            if self._failure is not None:
                raise self._failure
            if self._work():
                await asyncio.sleep(0)
            else:
                await self._wait()

    async def settle(self, within_s: float) -> None:
        if self._in_flight:
            await asyncio.wait(self._in_flight, timeout=within_s)

    async def _wait(self) -> None:
        """Waits for an event, or until a pod's back-off is over."""
        due = self._queue.due if self._may_decide() and self._full() is not None else None
        await set_within(self._woken, None if due is None else max(0.001, due - time.monotonic()))

    def _work(self) -> bool:
        """Decides for up to `TURN_S`; returns whether there may be more to do at once."""
        until = time.monotonic() + TURN_S
        while (full := self._full()) is not None and not self._is_stopped and self._may_decide():
            now = time.monotonic()
            if now > until:
                return True
            waiting = self._queue.next(now, full)
            if waiting is None:
                return False
            self._decide(waiting, now)
        return False

    def _full(self) -> Collection[str] | None:
        """Namespaces whose pods must wait for their own bindings in flight; None if all must wait."""
        if self.in_flight < self._most_in_flight:
            return ()
        spare = self._most_in_flight // SPARE_PART
        if self.in_flight >= self._most_in_flight + spare:
            return None
        return [namespace for namespace, number in self._of_namespace.items() if number >= spare]

    def _decide(self, waiting: Waiting, now: float) -> None:
        started = time.perf_counter()
        verdicts = self._cycle.decide(waiting, now)
        binds = [verdict for verdict in verdicts if isinstance(verdict, Bind)]
        signed = self._signed(binds, waiting.gang, now)
        for verdict in verdicts:
            if isinstance(verdict, Unschedulable):
                self._figures.unfit(verdict.codes)
                stay = verdict if waiting.gang else self._preemptor.consider(verdict, now)
                self._stays(stay.pod, stay.message, stay.cluster_events, now)
        for bind, each in zip(binds, signed, strict=False):
            self._run(self._bind(bind, each), bind.pod.namespace)
        if signed and waiting.gang is not None:
            self._tell_gang(waiting.gang, binds)
        if not waiting.attempts:
            self._tell_words(verdicts)
        self._preemptor.disappoint()
        took_s = time.perf_counter() - started
        self._queue.took(waiting, took_s)
        self._figures.decide_seconds.observe(took_s)

    def _signed(self, binds: Sequence[Bind], gang: Gang | None, now: float) -> Sequence[Signed]:
        """Signs the allocations; if one can't be written, reports it to the owners and returns nothing."""
        try:
            return self._bindings.sign(binds)
        except PartageError as error:  # its own annotations stand in the way
            message = str(error) if gang is None else f"gang {gang.name} is bound all or none: {error}"
            for bind in binds:
                self._stays(bind.pod, message, NOTHING, now)
            return ()

    def _tell_gang(self, gang: Gang, binds: Sequence[Bind]) -> None:
        """Reports that a gang spans nodes, in one event on its first pod."""
        if (words := spans_nodes(gang, binds, self._cluster.placed_pods.of_gang(gang))) is not None:
            self._events.failed(binds[0].pod, words, reason=SPANS_NODES)

    def _tell_words(self, verdicts: Sequence[Bind | Unschedulable]) -> None:
        """Reports, once for each pod, what it says about cards that nothing reads."""
        for verdict in verdicts:
            try:
                asks = bool(self._cycle.request(verdict.pod).containers)
            except PluginBroken:
                raise
            except PartageError:  # the request is rejected, which is reported elsewhere
                continue
            absent = self._cycle.predicates.absent(verdict.pod) if isinstance(verdict, Unschedulable) else ()
            words = self._lexicon.in_vain(seen(verdict.pod), asks=asks, absent=absent)
            if words is not None:
                self._events.failed(verdict.pod, words, reason=NOT_READ)

    def _run(self, work: Coroutine[None, None, None], namespace: str) -> None:
        task = asyncio.create_task(work)
        self._in_flight.add(task)
        self._of_namespace[namespace] += 1
        task.add_done_callback(partial(self._landed, namespace))

    async def _bind(self, bind: Bind, signed: Signed) -> None:
        started, since = time.perf_counter(), self._pods.waits_since(bind.pod.uid)
        outcome = await self._bindings.bind(bind, signed)
        self._figures.bind_seconds.observe(time.perf_counter() - started)
        now = time.monotonic()
        if isinstance(outcome, Bound) and since is not None:
            self._figures.placing_seconds.observe(now - since)
        self._came_back(bind, outcome, now)

    def _landed(self, namespace: str, task: asyncio.Task[None]) -> None:
        self._in_flight.discard(task)
        self._of_namespace[namespace] -= 1
        if not self._of_namespace[namespace]:
            del self._of_namespace[namespace]
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = error
        self.wake()

    def _came_back(self, bind: Bind, outcome: Outcome, now: float) -> None:
        pod = bind.pod
        match outcome:
            case Bound():
                self._figures.attempts["bound"] += 1
                self._events.scheduled(pod, bind.decision.node)
            case Already(node):
                self._figures.attempts["already"] += 1
                _log.info("pod already bound by another party", pod=f"{pod.namespace}/{pod.name}", node=node)
                self._queue.failed(pod.uid, AGAIN, now)
            case Lost():
                self._figures.attempts["lost"] += 1
                self._queue.failed(pod.uid, AGAIN, now)  # until the watch reports that it is gone
            case Failed(why, may_retry):
                self._figures.attempts["failed"] += 1
                self._repeats.say("a pod was not bound", pod=f"{pod.namespace}/{pod.name}", why=why)
                if may_retry and pod.uid in self._queue:
                    self._cluster.keep_for_gang(pod, bind.decision)
                if may_retry:
                    self._events.failed(pod, f"binding to {bind.decision.node} failed: {why}")
                self._queue.failed(pod.uid, AGAIN, now)

    def _stays(self, pod: ApiPod, message: str, cluster_events: frozenset[ClusterEvent], now: float) -> None:
        self._figures.attempts["unschedulable"] += 1
        if self._missed is not None and ClusterEvent.INVENTORY in cluster_events:
            self._missed(pod)
        self._queue.failed(pod.uid, cluster_events, now)
        self._events.failed(pod, message)
        self._status.tell(Unplaced(pod, message))
        if self._cluster.kept.node_of(pod.uid) is None and self._cluster.claims.needless(pod):
            self._run(self._bindings.let_go(pod), pod.namespace)
