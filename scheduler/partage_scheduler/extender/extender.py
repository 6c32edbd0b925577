"""The extender as a whole: a port, the verbs behind it, and the binder behind those."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Final

from partage_base.daemon.life import Tasks
from partage_base.kube import ApiServer
from partage_plugins.api import NodeName, PodUid
from partage_plugins.errors import PluginBroken
from partage_scheduler.api import StatusWriter
from partage_scheduler.authority import Authority
from partage_scheduler.cluster import ClusterEvent
from partage_scheduler.core import Core
from partage_scheduler.cycle import Unschedulable
from partage_scheduler.extender.bind import BindVerb
from partage_scheduler.extender.callers import CallerTrust
from partage_scheduler.extender.filter import NodeFilter
from partage_scheduler.extender.messages import FilterResult
from partage_scheduler.extender.preempt import PreemptVerb
from partage_scheduler.extender.reminders import Reminder
from partage_scheduler.extender.server import Port
from partage_scheduler.extender.verbs import Observe, Verbs
from partage_scheduler.objects import ApiPod
from partage_scheduler.placement.bindings import Bindings
from partage_scheduler.placement.preemptor import Preemptor
from partage_scheduler.settings import SchedulerSettings

_MAY_LEAVE: Final = frozenset((ClusterEvent.FREED,))


class Extender:
    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        settings: SchedulerSettings,
        *,
        core: Core,
        bindings: Bindings,
        server: ApiServer,
        status: StatusWriter,
        preemptor: Preemptor,
        authority: Authority,
        observe: Observe,
        reminded: Callable[[str], None],
    ) -> None:
        """`reminded` is called with the outcome of each reminder.

        Raises `BadConfiguration` if certificates can't be read.
        """
        chooser = NodeFilter(core.cycle, ours=settings.scheduler_name, most_nodes=settings.extender_nodes)
        self._placer = BindVerb(
            core=core,
            chooser=chooser,
            bindings=bindings,
            server=server,
            answered_within_s=settings.extender_answers_within_s,
        )
        self._broken: list[PluginBroken] = []
        self._ended = asyncio.Event()
        self._preemptor, self._sends_away = preemptor, settings.extender_preempts

        def is_known(node: NodeName) -> bool:
            return core.cycle.decider.slots.of(node) is not None

        def is_helped(uid: PodUid) -> bool:
            return core.cluster.kept.node_of(uid) is not None

        verbs = Verbs(
            chooser=chooser,
            placer=self._placer,
            yielding=PreemptVerb(core.preemption.finder, is_known=is_known, is_helped=is_helped),
            obstacle=authority.obstacle,
            observe=observe,
            answered=self._answered,
            broken=self._break,
        )
        self._reminder = Reminder(
            status,
            fits=chooser.fits,
            is_placed=lambda uid: core.cluster.placed_pods.node_of(uid) is not None,
            obstacle=authority.obstacle,
            ended=reminded,
        )
        certificate_files = settings.certificate_files
        self._trust = (
            None if certificate_files is None else CallerTrust(certificate_files, settings.extender_caller_names)
        )
        self._port = Port(settings.extender_address, verbs.answer, trust=self._trust)

    @property
    def port(self) -> int:
        """The port it listens on, for an address with port 0."""
        return self._port.port

    async def open(self, tasks: Tasks) -> None:
        """Listens; until this scheduler leads, callers get an error that says so."""
        await self._port.open()
        tasks.start(self._watch(), name="extender")
        tasks.start(self._reminder.run(), name="reminding")
        if self._trust is not None:
            tasks.start(self._trust.keep_fresh(self._port.part), name="the extender's certificates")

    async def settle(self, within_s: float) -> None:
        """Stops taking requests, and waits for bindings that are under way."""
        await self._port.close()
        if tasks := self._placer.tasks:
            await asyncio.wait(tasks, timeout=within_s)

    async def close(self) -> None:
        await self._port.abort()

    def _answered(self, pod: ApiPod, result: FilterResult) -> None:
        """kube-scheduler finds no victims if only shares are lacking, so we look for them after it has its answer."""
        if result.node_names:
            self._reminder.fits_somewhere(pod.uid)
            return
        self._reminder.fits_nowhere(pod)
        if result.failed_nodes and self._sends_away:
            asyncio.get_running_loop().call_soon(self._make_room, pod)

    def _make_room(self, pod: ApiPod) -> None:
        try:
            self._preemptor.consider(Unschedulable(pod, "", _MAY_LEAVE), time.monotonic())
        except PluginBroken as error:
            self._break(error)

    def _break(self, error: PluginBroken) -> None:
        self._broken.append(error)
        self._ended.set()

    async def _watch(self) -> None:
        await self._ended.wait()
        raise self._broken[0]
