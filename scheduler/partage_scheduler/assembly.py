"""Puts a scheduler together from its settings: who speaks to the API server, around the brain that decides."""

from __future__ import annotations

import asyncio
import socket
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from partage_base.daemon.errors import BadConfiguration
from partage_base.keyring import KeyringError, load_signing_key
from partage_base.kube import Access, ApiServer, BadAccess
from partage_base.version import VERSION
from partage_plugins.registry.registry import Registry
from partage_plugins.registry.watchdog import Watchdog
from partage_plugins.vocabulary import PodUid
from partage_scheduler.api import Conditions, Events
from partage_scheduler.api.binder import WITHIN_S, Binder
from partage_scheduler.api.election import Elector, Terms
from partage_scheduler.api.leader_endpoint import LeaderEndpoint
from partage_scheduler.api.streams import KINDS, Freshness
from partage_scheduler.core import Brain, brain
from partage_scheduler.eviction import EvictingSettings, Leaving
from partage_scheduler.extender.extender import Extender
from partage_scheduler.metrics import Figures, TimedActivity
from partage_scheduler.placement.evictor import Clearing
from partage_scheduler.placement.preemptor import Displacer
from partage_scheduler.placement.worker import Worker
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.signatures import Signer

_CONNECTIONS_BESIDE: Final = 8
"""For the Lease, events, conditions and looks at pods."""
_LONGEST_INSTANCE: Final = 128


@dataclass(frozen=True, kw_only=True)
class Parts:
    """What a service runs."""

    brain: Brain
    elector: Elector | None
    freshness: Freshness
    figures: Figures
    worker: Worker
    events: Events
    conditions: Conditions
    displacer: Displacer
    clearing: Clearing
    watchdog: Watchdog
    extender: Extender | None
    endpoint: LeaderEndpoint | None


def assemble(  # noqa: PLR0913 - said once, and by name
    settings: SchedulerSettings,
    server: ApiServer,
    *,
    signer: Signer,
    registry: Registry,
    figures: Figures,
    doubt_s: float | None = None,
) -> Parts:
    """All parts, none of them started."""
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    elector = _elector(settings, server, identity) if settings.elect else None
    freshness = Freshness(KINDS)
    activity = TimedActivity(figures.plugin_seconds)

    def may_bind() -> bool:
        return elector is None or elector.leads

    def may_decide() -> bool:
        return not freshness.missing and may_bind()

    def is_busy() -> bool:
        return worker.in_flight > settings.in_flight // 2

    def let_go(uid: PodUid) -> None:
        conditions.forget(uid)
        displacer.forget(uid)
        events.withdraw(uid)

    def why_not() -> str | None:
        if not may_bind():
            return "this scheduler of partage does not lead; ask the one that does, by the Service of the extender"
        if missing := sorted(freshness.missing):
            return f"partage does not know as of now: {', '.join(missing)}"
        return None

    events = Events(server, instance=identity[:_LONGEST_INSTANCE], sent=figures.sent, is_busy=is_busy)
    conditions = Conditions(server, written=figures.written)
    mind = brain(settings, registry, activity=activity, let_go=let_go, told=events.doubted)
    within_s = _terms(settings).last_word_s if settings.elect else WITHIN_S
    binder = Binder(server, may_bind=may_bind, erred=figures.erred, within_s=within_s, doubt_s=doubt_s)
    displacer = Displacer(server, mind.considering, events, may_act=may_bind, ended=figures.removed)
    worker = Worker(
        brain=mind,
        signer=signer,
        binder=binder,
        events=events,
        conditions=conditions,
        displacer=displacer,
        figures=figures,
        most_in_flight=settings.in_flight,
        may_decide=may_decide,
    )
    figures.ask(
        sizes=mind.queue.sizes,
        ages=freshness.ages,
        in_flight=lambda: worker.in_flight,
        leads=may_bind,
        cluster=mind.cluster,
    )
    extender = None
    if settings.extender_address:
        extender = Extender(
            settings,
            brain=mind,
            signer=signer,
            binder=binder,
            server=server,
            displacer=displacer,
            why_not=why_not,
            observe=figures.asked,
            reminded=figures.reminded,
        )
    return Parts(
        brain=mind,
        elector=elector,
        freshness=freshness,
        figures=figures,
        worker=worker,
        events=events,
        conditions=conditions,
        displacer=displacer,
        clearing=Clearing(server, _leaving(settings, mind), events, may_act=may_decide, ended=figures.removed),
        watchdog=Watchdog(activity, deadline_s=settings.plugin_deadline_s),
        extender=extender,
        endpoint=_endpoint(settings, server, leads=may_bind),
    )


async def api_server(settings: SchedulerSettings) -> ApiServer:
    """As whom we speak; `BadConfiguration` where nobody says."""
    try:
        access = await asyncio.to_thread(Access.find, settings.kubeconfig)
    except BadAccess as error:
        raise BadConfiguration(str(error)) from None
    connections = settings.in_flight + _CONNECTIONS_BESIDE
    return ApiServer(access, user_agent=f"partage-scheduler/{VERSION}", connections=connections)


def _leaving(settings: SchedulerSettings, mind: Brain) -> Leaving:
    wanted = EvictingSettings(lost=settings.evict_lost, paused=settings.drain_paused, after_s=settings.evict_after_s)
    return Leaving(mind.cluster, wanted)


def _endpoint(settings: SchedulerSettings, server: ApiServer, *, leads: Callable[[], bool]) -> LeaderEndpoint | None:
    if not settings.extender_slice:
        return None
    name, address = settings.extender_slice, settings.pod_ip
    return LeaderEndpoint(server, namespace=settings.namespace, name=name, address=address, leads=leads)


def _elector(settings: SchedulerSettings, server: ApiServer, identity: str) -> Elector:
    terms = _terms(settings)
    return Elector(server, namespace=settings.namespace, name=settings.scheduler_name, identity=identity, terms=terms)


def _terms(settings: SchedulerSettings) -> Terms:
    return Terms(lease_s=settings.lease_s, renew_s=settings.renew_s, retry_s=settings.retry_s)


def signer_of(settings: SchedulerSettings) -> Signer:
    """With the key that signs; `BadConfiguration` where there is none."""
    try:
        return Signer(load_signing_key(settings.below_root(settings.signing_keys)))
    except KeyringError as error:
        raise BadConfiguration(f"{error}; `partage keys new` makes a pair, see docs/keys.md") from None
