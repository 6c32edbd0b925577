"""The bind verb: the only place of extender mode where a pod is granted devices.

They are chosen on the pod's node, assumed at once, signed, and written together with the node in one request; the
outcome is determined with certainty, as in standalone mode. kube-scheduler may repeat a call that is under way or done,
since its own timeout may be shorter: the same node then means the same binding, another one is refused. Only pods that
kube-scheduler would bind through us are bound.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import NamedTuple

from partage_base.kube import ApiServer, KubeError, pod_path
from partage_plugins.api import NodeName, PodUid
from partage_plugins.errors import PartageError, PluginBroken
from partage_scheduler.api.binder import Already, Bound, Failed, Lost, Outcome
from partage_scheduler.core import Core
from partage_scheduler.cycle import Bind
from partage_scheduler.extender.filter import NodeFilter
from partage_scheduler.extender.messages import BindingArgs
from partage_scheduler.objects import ApiPod
from partage_scheduler.placement.bindings import Bindings

BOUND, CONFLICT, ALREADY, LOST, FAILED, LATE = "bound", "conflict", "already", "lost", "failed", "late"
REFUSED = "refused"


class Placed(NamedTuple):
    how: str
    error: str = ""
    """The error for kube-scheduler; empty if the pod is bound."""


@dataclass
class _UnderWay:
    node: NodeName
    task: asyncio.Task[Placed]


class BindVerb:
    def __init__(
        self,
        *,
        core: Core,
        chooser: NodeFilter,
        bindings: Bindings,
        server: ApiServer,
        answered_within_s: float,
    ) -> None:
        """A call waits at most `answered_within_s`; a binding under way continues."""
        self._cluster, self._chooser, self._bindings = core.cluster, chooser, bindings
        self._server, self._answered_within_s = server, answered_within_s
        self._under_way: dict[PodUid, _UnderWay] = {}

    @property
    def tasks(self) -> tuple[asyncio.Task[Placed], ...]:
        return tuple(each.task for each in self._under_way.values())

    async def bind(self, args: BindingArgs) -> Placed:
        """Returns when the outcome is certain, or after `answered_within_s`."""
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
        if (node := self._cluster.placed_pods.node_of(args.pod_uid)) is not None:
            return Placed(BOUND) if node == args.node else Placed(ALREADY, f"it is on node {node} already")
        pod = self._chooser.asked(args.pod_uid) or await self._looked_up(args)
        if isinstance(pod, Placed):
            return pod
        if (why := self._chooser.against_binding(pod)) is not None:
            return Placed(REFUSED, why)
        bind = self._assumed(pod, args.node)
        if isinstance(bind, str):
            return Placed(CONFLICT, bind)
        try:
            (signed,) = self._bindings.sign((bind,))
        except PartageError as error:  # the pod's own annotations prevent it
            return Placed(FAILED, str(error))
        return self._told(bind, await self._bindings.bind(bind, signed))

    async def _looked_up(self, args: BindingArgs) -> ApiPod | Placed:
        try:
            pod = await self._server.get(pod_path(args.pod_namespace, args.pod_name), ApiPod)
        except KubeError as error:
            return Placed(LOST, str(error))
        if pod.uid != args.pod_uid:
            return Placed(LOST, "it is gone, and another pod has its name")
        return Placed(ALREADY, f"it is on node {pod.node} already") if pod.node else pod

    def _assumed(self, pod: ApiPod, node: NodeName) -> Bind | str:
        try:
            decision = self._chooser.on(pod, node, time.monotonic())
        except PluginBroken:
            raise
        except PartageError as error:
            return str(error)
        return decision if isinstance(decision, str) else Bind(pod, decision, self._cluster.assume(pod, decision))

    def _told(self, bind: Bind, outcome: Outcome) -> Placed:
        match outcome:
            case Bound():
                self._chooser.forget(bind.pod.uid)
                return Placed(BOUND)
            case Already(other):
                return Placed(ALREADY, f"somebody else bound it to {other}, and not to {bind.decision.node}")
            case Lost(why):
                return Placed(LOST, why)
            case Failed(why):
                return Placed(FAILED, why)
