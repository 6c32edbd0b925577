"""The cluster cache and the decision logic, wired together; the only I/O is reading public keys."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

import structlog

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.logs import Repeats
from partage_base.daemon.plugins import load_all
from partage_base.keyring import Keyring
from partage_plugins.api import Allocation, PluginName, PodUid
from partage_plugins.api.keys import PREFIX
from partage_plugins.errors import PartageError
from partage_plugins.framework.scheduler import FrameworkSettings, SchedulerFramework
from partage_plugins.hooks import SCHEDULER_GROUP
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.calls import Activity
from partage_plugins.registry.entry_points import blocked_names, installed, tracing
from partage_plugins.registry.registry import Registry
from partage_plugins.rules.words import Lexicon
from partage_scheduler.cluster import Asks, Cluster, ClusterSettings
from partage_scheduler.cycle import Cycle
from partage_scheduler.decision import Decider, Ledger
from partage_scheduler.event_handlers import EventHandlers
from partage_scheduler.objects import ApiPod, seen
from partage_scheduler.predicates import Predicates
from partage_scheduler.preemption import Budgets, Preemption, VictimFinder
from partage_scheduler.queue import Queue, QueueSettings
from partage_scheduler.quotas import Quotas
from partage_scheduler.reservation.pods import RESOURCE
from partage_scheduler.resize import Resizes
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.signatures import Trust

_log = structlog.get_logger()


Mirror = Callable[[ApiPod, Allocation], Mapping[str, str]]
"""Returns a pod's allocation as annotations of other systems."""


@dataclass(frozen=True, kw_only=True)
class Core:
    cluster: Cluster
    queue: Queue
    cycle: Cycle
    resizes: Resizes
    event_handlers: EventHandlers
    preemption: Preemption
    mirror: Mirror
    lexicon: Lexicon


def plugins(names: Collection[str] | None = None) -> Registry:
    """Installed plugins that are not blocked; with `names`, the installed plugins of these names."""
    there = installed(SCHEDULER_GROUP)
    if names is not None:
        return load_all(scheduler_hooks, [each for each in there if each.name in names], blocked=frozenset())
    return load_all(scheduler_hooks, there, blocked=blocked_names(os.environ))


def new_core(  # noqa: PLR0913 - what differs between a daemon, a look and a test
    settings: SchedulerSettings,
    registry: Registry,
    *,
    activity: Activity | None = None,
    let_go: Callable[[PodUid], None] = lambda _uid: None,
    told: Callable[[ApiPod, str], None] = lambda _pod, _words: None,
    trusted: Callable[[ApiPod], Allocation | None] | None = None,
) -> Core:
    """A core with an empty cache.

    `let_go` is called for pods that no longer need a node. `told` is called for pods whose annotations differ from the
    allocation that counts for them. `trusted` reads allocations on pods, in place of verification by the keys that the
    settings name.
    """
    of_side = FrameworkSettings(weights=_weights(settings, registry), traced=tracing(os.environ))
    decider, framework = decider_over(registry, settings=of_side, on_renewed=_renewed, activity=activity)
    ours = (PREFIX, *_answered_for(framework))
    if settings.reserve_image and RESOURCE in ours:
        raise BadConfiguration(
            f"reserve_image takes cards from kubelet by pods that ask for {RESOURCE}, and a plugin reads that word as "
            "its own: set PARTAGE_NVIDIA_GPU to kubelet, or leave reserve_image empty"
        )
    predicates = Predicates(ours=ours, allocates_claims=settings.claims)
    cluster = Cluster(
        decider,
        predicates,
        trusted=trusted or _trust(settings, registry).trusted,
        asks=Asks(framework.requests, ours).of,
        told=told,
        settings=ClusterSettings(
            silent_after_s=settings.silent_after_s, claims_of=settings.scheduler_name if settings.claims else ""
        ),
        kinds=registry.kinds,
    )
    budgets, quotas = Budgets(), Quotas(cluster)
    queue = Queue(_queue_settings(settings), placed_on=cluster.placed_pods.placed_on)
    event_handlers = EventHandlers(
        cluster,
        predicates,
        queue,
        ours=settings.scheduler_name,
        clock=time.monotonic,
        wall_clock=time.time,
        let_go=let_go,
        on_unread=_on_unread(),
        budgets=budgets,
        quotas=quotas,
    )
    cycle = Cycle(decider, framework.requests, cluster, predicates, quotas)
    preemption = Preemption(VictimFinder(cycle, budgets, utc=time.time, longest_grace_s=settings.longest_grace_s))
    return Core(
        cluster=cluster,
        queue=queue,
        cycle=cycle,
        resizes=Resizes(cycle, quotas),
        event_handlers=event_handlers,
        preemption=preemption,
        mirror=_mirror(framework, cluster) if settings.mirror else lambda _pod, _allocation: {},
        lexicon=lexicon_of(framework),
    )


def _mirror(framework: SchedulerFramework, cluster: Cluster) -> Mirror:
    def mirrored(pod: ApiPod, allocation: Allocation) -> Mapping[str, str]:
        if not allocation.containers:
            return {}
        return framework.mirror(seen(pod), allocation, cluster.inventory(allocation.node))

    return mirrored


def _answered_for(framework: SchedulerFramework) -> Iterable[str]:
    try:
        return sorted(framework.resources())
    except PartageError as error:
        raise BadConfiguration(str(error)) from None


def lexicon_of(framework: SchedulerFramework) -> Lexicon:
    """The words about cards that any of its plugins defines."""
    try:
        return Lexicon(framework.words())
    except PartageError as error:
        raise BadConfiguration(str(error)) from None


def _weights(settings: SchedulerSettings, registry: Registry) -> Mapping[PluginName, float]:
    unknown = sorted(settings.weights.keys() - set(registry.names))
    if unknown:
        raise BadConfiguration(f"score_weights names {unknown[0]}; there are {', '.join(sorted(registry.names))}")
    return settings.weights


def _queue_settings(settings: SchedulerSettings) -> QueueSettings:
    return QueueSettings(
        first_s=settings.back_off_s, most_s=settings.most_back_off_s, gang_timeout_s=settings.gang_timeout_s
    )


def _trust(settings: SchedulerSettings, registry: Registry) -> Trust:
    repeats = Repeats(every_s=600)

    def refused(pod: ApiPod, why: str) -> None:
        if repeats.due(pod.uid) is not None:
            _log.warning("allocation rejected", pod=f"{pod.namespace}/{pod.name}", node=pod.node, why=why)

    return Trust(Keyring(settings.below_root(settings.keys)).current, registry.kinds, on_refused=refused)


def _on_unread() -> Callable[[str, str], None]:
    repeats = Repeats(every_s=60)
    event = "a node's reports on suspended pods can't be read"
    return lambda node, why: repeats.say(event, key=node, node=node, why=why)


def _renewed(why: PartageError) -> None:
    _log.error("plugin state inconsistent; plugin recreated and its state replayed", why=str(why))


def decider_over(
    registry: Registry,
    *,
    settings: FrameworkSettings | None = None,
    on_renewed: Callable[[PartageError], None] | None = None,
    activity: Activity | None = None,
) -> tuple[Decider, SchedulerFramework]:
    """A decider without nodes, and the framework over its plugins, which reads requests.

    `on_renewed` receives the reason why a plugin was recreated, for the log; `activity` shows which call is running.
    """

    def renewed(why: PartageError) -> None:
        decider.score_cache.forget()  # earlier answers of that plugin may have been wrong
        if on_renewed is not None:
            on_renewed(why)

    books = Ledger()
    framework = SchedulerFramework(registry, books, settings=settings, activity=activity, on_renewed=renewed)
    decider = Decider(framework, books)
    return decider, framework
