"""Watches of the API server, and their sinks: every object that placing depends on, typed.

All pods that have not ended are watched, of any scheduler, since they hold resources of nodes. Each stream first
delivers a full list and then changes; while one is lost, its changes are unknown, and nothing may be decided on it
(`Freshness`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final, Generic, Protocol, TypeVar

from partage_base.daemon.health import Health
from partage_base.daemon.life import Tasks
from partage_base.daemon.logs import Repeats
from partage_base.kube import (
    NOT_ENDED,
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    Listed,
    Lost,
    Undecodable,
    follow,
    leases_path,
    nodes_path,
    pods_path,
)
from partage_scheduler.event_handlers import EventHandlers
from partage_scheduler.objects import (
    ApiBudget,
    ApiClaim,
    ApiCsiNode,
    ApiDeviceClass,
    ApiLease,
    ApiNamespace,
    ApiNode,
    ApiPod,
    ApiQuota,
    ApiResourceClaim,
    ApiStorageClass,
    ApiVolume,
)

T = TypeVar("T")
T_contra = TypeVar("T_contra", contravariant=True)
FIRST_AGAIN_S: Final = 0.2
MOST_AGAIN_S: Final = 5.0


class EventHandler(Protocol[T_contra]):
    def listed(self, items: Iterable[T_contra], undecodable: Sequence[Undecodable] = (), /) -> None:
        """All objects; `undecodable` lists those that can't be read, which are also passed to `undecodable()`."""
        ...

    def changed(self, item: T_contra) -> None: ...

    def gone(self, item: T_contra) -> None:
        """A deleted object, in its last state."""
        ...

    def undecodable(self, which: Undecodable) -> None:
        """An object that can't be read in its current state."""
        ...


@dataclass(frozen=True)
class Stream(Generic[T]):
    name: str
    path: str
    item_type: type[T]
    fields: str = ""
    labels: str = ""


PODS: Final = Stream("pods", pods_path(), ApiPod, NOT_ENDED)
NODES: Final = Stream("nodes", nodes_path(), ApiNode)
NAMESPACES: Final = Stream("namespaces", "/api/v1/namespaces", ApiNamespace)
VOLUMES: Final = Stream("persistentvolumes", "/api/v1/persistentvolumes", ApiVolume)
CLAIMS: Final = Stream("persistentvolumeclaims", "/api/v1/persistentvolumeclaims", ApiClaim)
CLASSES: Final = Stream("storageclasses", "/apis/storage.k8s.io/v1/storageclasses", ApiStorageClass)
CSI_NODES: Final = Stream("csinodes", "/apis/storage.k8s.io/v1/csinodes", ApiCsiNode)
BUDGETS: Final = Stream("poddisruptionbudgets", "/apis/policy/v1/poddisruptionbudgets", ApiBudget)
QUOTAS: Final = Stream("resourcequotas", "/api/v1/resourcequotas", ApiQuota)
RESOURCE_CLAIMS: Final = Stream("resourceclaims", "/apis/resource.k8s.io/v1/resourceclaims", ApiResourceClaim)
DEVICE_CLASSES: Final = Stream("deviceclasses", "/apis/resource.k8s.io/v1/deviceclasses", ApiDeviceClass)
OF_CLAIMS: Final = (RESOURCE_CLAIMS.name, DEVICE_CLASSES.name)
"""Kinds that are watched if this scheduler allocates claims; older API servers don't have them."""
KINDS: Final = (
    "nodes",
    "leases",
    "namespaces",
    *(each.name for each in (VOLUMES, CLAIMS, CLASSES, CSI_NODES, BUDGETS, QUOTAS)),
    "pods",
)


def all_streams(
    event_handlers: EventHandlers, *, namespace: str, claims: bool
) -> Iterator[tuple[Stream[Any], EventHandler[Any]]]:
    """Each stream with its sink; `claims`: this scheduler allocates them. `namespace` has the nodes' heartbeats."""
    yield NODES, event_handlers.nodes
    yield Stream("leases", leases_path(namespace), ApiLease), event_handlers.heartbeats
    yield NAMESPACES, event_handlers.namespaces
    yield VOLUMES, event_handlers.volumes
    yield CLAIMS, event_handlers.claims
    yield CLASSES, event_handlers.classes
    yield CSI_NODES, event_handlers.csi_nodes
    yield BUDGETS, event_handlers.budgets
    yield QUOTAS, event_handlers.quotas
    if claims:
        yield DEVICE_CLASSES, event_handlers.device_classes
        yield RESOURCE_CLAIMS, event_handlers.resource_claims
    yield PODS, event_handlers.pods


class Freshness:
    def __init__(self, kinds: Iterable[str], *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lost: dict[str, float] = dict.fromkeys(kinds, clock())

    @property
    def missing(self) -> Iterable[str]:
        """The kinds that may be out of date."""
        return self._lost.keys()

    def ages(self) -> Mapping[str, float]:
        now = self._clock()
        return {kind: now - since for kind, since in self._lost.items()}

    def fresh(self, kind: str) -> bool:
        """Returns whether it was out of date before."""
        return self._lost.pop(kind, None) is not None

    def lost(self, kind: str) -> bool:
        """Returns whether it was current before."""
        is_news = kind not in self._lost
        self._lost.setdefault(kind, self._clock())
        return is_news


def patience(first_s: float = FIRST_AGAIN_S, most_s: float = MOST_AGAIN_S) -> Backoff:
    return Backoff(first_s=first_s, most_s=most_s)


class Follower:
    """Watches kinds of objects for a daemon that leads; the daemon is ready while all of them are current."""

    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        freshness: Freshness,
        *,
        tasks: Tasks,
        health: Health,
        heard: Callable[[], None],
        known: Callable[[], None],
        patience: Callable[[], Backoff] = patience,
        skipped: Callable[[str], None] = lambda _kind: None,
        hint: str = "",
    ) -> None:
        """`heard` is called after each event, `skipped` for each object that can't be read.

        `known` is called when all kinds are current, at first and after a loss. `hint` ends the message about those
        that are not.
        """
        self._server, self._freshness, self._tasks, self._health = server, freshness, tasks, health
        self._heard, self._known, self._patience, self._skipped = heard, known, patience, skipped
        self._hint = hint

    def judge(self) -> None:
        missing = sorted(self._freshness.missing)
        if missing:
            self._health.unready("caches", f"not known as of now: {', '.join(missing)}{self._hint}")
        else:
            self._health.ready("caches")
            self._known()

    def follow(self, stream: Stream[T], sink: EventHandler[T]) -> None:
        """Starts to pass all objects of the kind to `sink`."""
        self._tasks.start(self._followed(stream, sink), name=f"following {stream.name}")

    def _turned(self, *, is_news: bool) -> None:
        if is_news:
            self.judge()

    async def _followed(self, stream: Stream[T], sink: EventHandler[T]) -> None:
        repeats, undecodable = Repeats(every_s=30), Repeats(every_s=30)

        def skip(*which: Undecodable) -> None:
            for each in which:
                sink.undecodable(each)
                self._skipped(stream.name)
                _say_unread(undecodable, stream.name, each)

        objects = follow(
            self._server,
            stream.path,
            stream.item_type,
            labels=stream.labels,
            fields=stream.fields,
            backoff=self._patience(),
        )
        async with aclosing(objects):
            async for seen in objects:
                match seen:
                    case Changed(item):
                        sink.changed(item)
                    case Deleted(item):
                        sink.gone(item)
                    case Listed():
                        # no variable keeps the objects, which would hold them as long as the watch
                        sink.listed(seen.items, seen.undecodable)
                        skip(*seen.undecodable)
                        self._turned(is_news=self._freshness.fresh(stream.name))
                    case Undecodable():
                        skip(seen)
                    case Lost(error):
                        repeats.failed("nothing is placed until this is followed again", error, kind=stream.name)
                        self._turned(is_news=self._freshness.lost(stream.name))
                self._heard()


def _say_unread(repeats: Repeats, kind: str, which: Undecodable) -> None:
    if not which.is_gone:
        name = "/".join(filter(None, which.key))
        what = "an object can't be read, and is passed over"
        repeats.say(what, kind=kind, name=name, node=which.node, why=which.why)
