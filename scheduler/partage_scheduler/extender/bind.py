"""What bind asks for: only here is a pod given devices.

They are chosen on its node, counted from that moment, signed, and written together with the node in one request; what
becomes of it is found out for certain, as in standalone mode. kube-scheduler may ask again for what is under way or
done, since it waits for no answer longer than it was told to: the same node is then the same binding, another one is
refused. Whoever asks, it is done for those pods alone that kube-scheduler would bind by us.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from partage_base.kube import ApiServer, KubeError, pod_path
from partage_plugins.errors import PartageError, PluginBroken
from partage_plugins.vocabulary import NodeName, PodUid
from partage_scheduler.api.binder import Already, Binder, Bound, Failed, Lost, Outcome
from partage_scheduler.core import Brain
from partage_scheduler.decision import Decision
from partage_scheduler.extender.filter import Chooser
from partage_scheduler.extender.messages import BindingArgs
from partage_scheduler.objects import ApiPod
from partage_scheduler.signatures import Signer

BOUND, CONFLICT, ALREADY, LOST, FAILED, LATE = "bound", "conflict", "already", "lost", "failed", "late"
REFUSED = "refused"


class Placed(NamedTuple):
    """What became of it."""

    how: str
    error: str = ""
    """What kube-scheduler is told; empty where it is bound."""


@dataclass
class _UnderWay:
    node: NodeName
    task: asyncio.Task[Placed]


class Placer:
    """Binds."""

    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        *,
        brain: Brain,
        chooser: Chooser,
        signer: Signer,
        binder: Binder,
        server: ApiServer,
        answered_within_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """An answer waits for `answered_within_s` at most; what is under way goes on."""
        self._brain, self._chooser, self._signer, self._binder = brain, chooser, signer, binder
        self._server, self._clock, self._answered_within_s = server, clock, answered_within_s
        self._under_way: dict[PodUid, _UnderWay] = {}

    @property
    def tasks(self) -> tuple[asyncio.Task[Placed], ...]:
        """Bindings that are under way."""
        return tuple(each.task for each in self._under_way.values())

    async def bind(self, args: BindingArgs) -> Placed:
        """Until it is certain what became of it, or that takes too long to be waited for."""
        under_way = self._under_way.get(args.pod_uid)
        if under_way is None:
            under_way = self._begun(args)
        elif under_way.node != args.node:
            return Placed(ALREADY, f"its binding to {under_way.node} is under way")
        done, _ = await asyncio.wait((under_way.task,), timeout=self._answered_within_s)
        if not done:
            return Placed(LATE, f"it is not known yet what became of its binding to {args.node}")
        return under_way.task.result()

    def _begun(self, args: BindingArgs) -> _UnderWay:
        task = asyncio.create_task(self._bound(args))
        begun = self._under_way[args.pod_uid] = _UnderWay(args.node, task)
        task.add_done_callback(lambda _task: self._under_way.pop(args.pod_uid, None))
        return begun

    async def _bound(self, args: BindingArgs) -> Placed:
        if (node := self._brain.cluster.node_of(args.pod_uid)) is not None:
            return Placed(BOUND) if node == args.node else Placed(ALREADY, f"it is on node {node} already")
        pod = self._chooser.asked(args.pod_uid) or await self._looked_up(args)
        if isinstance(pod, Placed):
            return pod
        if (why := self._chooser.against_binding(pod)) is not None:
            return Placed(REFUSED, why)
        decision = self._decided(pod, args.node)
        if isinstance(decision, str):
            return Placed(CONFLICT, decision)
        return await self._sent(pod, decision)

    async def _looked_up(self, args: BindingArgs) -> ApiPod | Placed:
        try:
            pod = await self._server.get(pod_path(args.pod_namespace, args.pod_name), ApiPod)
        except KubeError as error:
            return Placed(LOST, str(error))
        if pod.uid != args.pod_uid:
            return Placed(LOST, "it is gone, and another pod has its name")
        return Placed(ALREADY, f"it is on node {pod.node} already") if pod.node else pod

    def _decided(self, pod: ApiPod, node: NodeName) -> Decision | str:
        """It counts from now on, so that no other decision gives the same away."""
        try:
            decision = self._chooser.on(pod, node, self._clock())
        except PluginBroken:
            raise
        except PartageError as error:
            return str(error)
        if not isinstance(decision, str):
            self._brain.cluster.assume(pod, decision)
        return decision

    async def _sent(self, pod: ApiPod, decision: Decision) -> Placed:
        try:
            signed = self._signer.sign(pod, decision.allocation())
        except PartageError as error:  # its own annotations stand in the way
            return self._back(pod, FAILED, str(error))
        return self._came_back(pod, decision.node, await self._binder.bind(pod, decision.node, signed.annotations))

    def _came_back(self, pod: ApiPod, node: NodeName, outcome: Outcome) -> Placed:
        match outcome:
            case Bound():
                self._brain.cluster.confirmed(pod.uid, self._clock())
                self._chooser.forget(pod.uid)
                return Placed(BOUND)
            case Already(other):
                return self._back(pod, ALREADY, f"somebody else bound it to {other}, and not to {node}")
            case Lost(why):
                return self._back(pod, LOST, why)
            case Failed(why):
                return self._back(pod, FAILED, why)

    def _back(self, pod: ApiPod, how: str, error: str) -> Placed:
        now = self._clock()
        self._brain.queue.happened(self._brain.cluster.undo(pod.uid, now), now)
        return Placed(how, error)
