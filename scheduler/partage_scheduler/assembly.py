"""Builds a scheduler from its settings: the core that decides, and the components that use the API server."""

from __future__ import annotations

import os
import socket
import uuid
from dataclasses import dataclass
from functools import partial
from typing import Final

from partage_base.daemon.api_server import server_for
from partage_base.daemon.errors import BadConfiguration
from partage_base.keyring import KeyringError, load_signing_key
from partage_base.kube import ApiServer
from partage_plugins.api import PodUid
from partage_plugins.registry.registry import Registry
from partage_plugins.registry.watchdog import Watchdog
from partage_scheduler.api import Events, StatusWriter
from partage_scheduler.api.binder import WITHIN_S, Binder
from partage_scheduler.api.claim_writer import ClaimWriter
from partage_scheduler.api.election import Elector
from partage_scheduler.api.leader_endpoint import LeaderEndpoint
from partage_scheduler.api.streams import KINDS, OF_CLAIMS, Freshness
from partage_scheduler.authority import Authority
from partage_scheduler.core import Core, new_core
from partage_scheduler.eviction import EvictionSettings, Notices
from partage_scheduler.extender.extender import Extender
from partage_scheduler.metrics import Figures, TimedActivity
from partage_scheduler.occupancy import OccupancyMetrics
from partage_scheduler.placement.allocation_writer import AllocationWriter
from partage_scheduler.placement.bindings import Bindings
from partage_scheduler.placement.evictor import Evictor
from partage_scheduler.placement.preemptor import Preemptor
from partage_scheduler.placement.reserver import Reserver
from partage_scheduler.placement.resized_pods import ResizedPods
from partage_scheduler.placement.resizer import Resizer
from partage_scheduler.placement.suspender import Suspender
from partage_scheduler.placement.worker import SPARE_PART, Worker
from partage_scheduler.published import published
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.signatures import Signer

_CONNECTIONS_BESIDE: Final = 8
"""Connections for the Lease, events, conditions and reads of pods, beside those for bindings."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The components of a scheduler, not started yet."""

    core: Core
    elector: Elector | None
    """None if leader election is off: this scheduler is then the only one."""
    freshness: Freshness
    figures: Figures
    occupancy: OccupancyMetrics
    worker: Worker
    events: Events
    status: StatusWriter
    preemptor: Preemptor
    evictor: Evictor
    resizer: Resizer
    suspender: Suspender
    resized_pods: ResizedPods
    reserver: Reserver | None
    """None if no cards are reserved from kubelet."""
    watchdog: Watchdog
    extender: Extender | None
    """None if no address for a kube-scheduler is set."""
    endpoint: LeaderEndpoint | None
    allocates_claims: bool = False


def assemble(  # noqa: PLR0913 - said once, and by name
    settings: SchedulerSettings,
    server: ApiServer,
    *,
    signer: Signer,
    registry: Registry,
    figures: Figures,
    doubt_s: float | None = None,
) -> Parts:
    identity = f"{socket.gethostname()}_{uuid.uuid4()}"
    elector = _elector(settings, server, registry, identity) if settings.elect else None
    freshness = Freshness((*KINDS, *(OF_CLAIMS if settings.claims else ())))
    authority = Authority(elector, freshness)
    within_s = settings.terms.last_word_s if settings.elect else WITHIN_S
    binder = Binder(server, may_bind=authority.may_bind, erred=figures.erred, within_s=within_s, doubt_s=doubt_s)
    status = StatusWriter(server, written=figures.conditions.add)
    events = Events(
        server,
        instance=identity,
        sent=figures.events.add,
        is_busy=lambda: binder.in_flight > settings.in_flight // 2,
    )

    def waits_no_more(uid: PodUid) -> None:
        status.forget(uid)
        events.withdraw(uid)

    activity = TimedActivity(figures.plugin_seconds)
    core = new_core(settings, registry, activity=activity, let_go=waits_no_more, told=events.doubted)
    claims = _claim_writer(server, core, authority, figures) if settings.claims else None
    bindings = Bindings(core, signer, binder, status, claims)
    preemptor = Preemptor(
        server, core.preemption, events, status, may_act=authority.may_bind, ended=figures.removed.add
    )
    reserver = _reserver(settings, core, server, authority)
    worker = Worker(
        core=core,
        bindings=bindings,
        events=events,
        status=status,
        preemptor=preemptor,
        figures=figures,
        most_in_flight=settings.in_flight,
        may_decide=authority.may_decide,
        missed=reserver.missed if reserver is not None else None,
    )
    occupancy = OccupancyMetrics(core.cluster)
    figures.read(core, freshness, binder, authority, lambda: signer.key.id, occupancy.families)
    writer = AllocationWriter(server, core, signer, authority=authority, figures=figures, within_s=within_s)
    extender = _extender(settings, core, bindings, server, status, preemptor, authority, figures)
    return Parts(
        core=core,
        elector=elector,
        freshness=freshness,
        figures=figures,
        occupancy=occupancy,
        worker=worker,
        events=events,
        status=status,
        preemptor=preemptor,
        evictor=_evictor(settings, core, server, events, authority, figures),
        resizer=_resizer(settings, core, writer, events, status, authority, figures),
        suspender=Suspender(core, writer, preemptor, events=events, authority=authority, figures=figures),
        resized_pods=ResizedPods(server, core, namespace=settings.namespace, authority=authority, figures=figures),
        reserver=reserver,
        watchdog=Watchdog(activity, deadline_s=settings.plugin_deadline_s),
        extender=extender,
        endpoint=_endpoint(settings, server, authority),
        allocates_claims=settings.claims,
    )


async def api_server(settings: SchedulerSettings) -> ApiServer:
    """Client by the kubeconfig or the in-cluster configuration; raises `BadConfiguration` if there is no access."""
    connections = settings.in_flight + settings.in_flight // SPARE_PART + _CONNECTIONS_BESIDE
    return await server_for("scheduler", settings.kubeconfig, connections=connections)


def _evictor(  # noqa: PLR0913, PLR0917 - called once
    settings: SchedulerSettings, core: Core, server: ApiServer, events: Events, authority: Authority, figures: Figures
) -> Evictor:
    wanted = EvictionSettings(lost=settings.evict_lost, paused=settings.drain_paused, after_s=settings.evict_after_s)
    notices = Notices(core.cluster, wanted)
    return Evictor(server, notices, events, may_act=authority.may_decide, ended=figures.removed.add)


def _extender(  # noqa: PLR0913, PLR0917 - called once
    settings: SchedulerSettings,
    core: Core,
    bindings: Bindings,
    server: ApiServer,
    status: StatusWriter,
    preemptor: Preemptor,
    authority: Authority,
    figures: Figures,
) -> Extender | None:
    if not settings.extender_address:
        return None
    return Extender(
        settings,
        core=core,
        bindings=bindings,
        server=server,
        status=status,
        preemptor=preemptor,
        authority=authority,
        observe=figures.asked,
        reminded=figures.reminders.add,
    )


def _resizer(  # noqa: PLR0913, PLR0917 - called once
    settings: SchedulerSettings,
    core: Core,
    writer: AllocationWriter,
    events: Events,
    status: StatusWriter,
    authority: Authority,
    figures: Figures,
) -> Resizer:
    return Resizer(
        core,
        writer,
        events=events,
        status=status,
        authority=authority,
        figures=figures,
        ours=None if settings.extender_address else settings.scheduler_name,
    )


def _reserver(settings: SchedulerSettings, core: Core, server: ApiServer, authority: Authority) -> Reserver | None:
    if not settings.reserve_image:
        return None
    return Reserver(
        server,
        core,
        image=settings.reserve_image,
        quiet_s=settings.reserve_quiet_s,
        may_act=authority.may_decide,
    )


def _claim_writer(server: ApiServer, core: Core, authority: Authority, figures: Figures) -> ClaimWriter:
    return ClaimWriter(
        server,
        known=core.cluster.claims.get,
        told=core.event_handlers.resource_claims.changed,
        may_write=authority.may_bind,
        erred=figures.erred,
    )


def _endpoint(settings: SchedulerSettings, server: ApiServer, authority: Authority) -> LeaderEndpoint | None:
    if not settings.extender_slice:
        return None
    name, address = settings.extender_slice, settings.pod_ip
    return LeaderEndpoint(server, namespace=settings.namespace, name=name, address=address, leads=authority.may_bind)


def _elector(settings: SchedulerSettings, server: ApiServer, registry: Registry, identity: str) -> Elector:
    return Elector(
        server,
        namespace=settings.namespace,
        name=settings.scheduler_name,
        identity=identity,
        terms=settings.terms,
        annotations=published(settings, registry, os.environ, identity),
    )


def signer_of(settings: SchedulerSettings) -> Signer:
    """The signer with the current signing key; raises `BadConfiguration` if there is none."""
    try:
        return Signer(partial(load_signing_key, settings.below_root(settings.signing_keys)))
    except KeyringError as error:
        raise BadConfiguration(f"{error}; `partage keys new` makes a pair, see docs/keys.md") from None
