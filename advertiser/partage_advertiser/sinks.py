"""Sinks of the inventory besides the file: the cluster, or only the log on a machine without one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Protocol

from partage_advertiser.condition_changes import ConditionChange
from partage_advertiser.events import Events, logged
from partage_advertiser.heartbeat import Heartbeat
from partage_advertiser.publisher import Publisher
from partage_advertiser.resizes import ResizeFiles, suspension_reports
from partage_advertiser.settings import AdvertiserSettings
from partage_base.kube import ApiServer

Counted = Callable[[str], None]
"""Called with an outcome."""


class Sink(Protocol):
    def want(self, text: str) -> None:
        """Set the inventory to publish."""

    def tell(self, happening: ConditionChange) -> None: ...

    @property
    def is_true(self) -> bool:
        """Whether everything published is up to date, as far as we know."""
        ...

    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Background coroutines that run as long as the advertiser, by name."""
        ...


class ClusterSink:
    """The Node's annotation, Events on it, and a Lease with the node's keys, renewed while `beats` returns True."""

    def __init__(  # noqa: PLR0913 - said once, and by name
        self,
        server: ApiServer,
        settings: AdvertiserSettings,
        *,
        beats: Callable[[], bool],
        keys: Callable[[], Iterable[str]],
        versions: Callable[[], Mapping[str, str]],
        on_labels: Callable[[Mapping[str, str]], None],
        patched: Counted,
        beaten: Counted,
        sent: Counted,
    ) -> None:
        node = settings.node_name
        self._events = Events(server, node, sent=sent)
        self._publisher = Publisher(server, node, on_labels=on_labels, patched=patched)
        self._resizes = ResizeFiles(server, settings.root, namespace=settings.namespace, node=node)
        self._heartbeat = Heartbeat(
            server,
            namespace=settings.namespace,
            node=node,
            every_s=settings.heartbeat_s,
            node_uid=lambda: self._publisher.node_uid,
            beats=beats,
            keys=keys,
            versions=versions,
            suspended=partial(suspension_reports, settings.root),
            beaten=beaten,
        )

    def want(self, text: str) -> None:
        self._publisher.want(text)

    def tell(self, happening: ConditionChange) -> None:
        self._events.tell(happening)

    @property
    def is_true(self) -> bool:
        return self._publisher.is_true

    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        return {
            "publishing": self._publisher.run(),
            "heartbeat": self._heartbeat.run(),
            "events": self._events.run(),
            "resizes": self._resizes.run(),
        }


class LogSink:
    """The sink of a machine without a cluster: only the file has to be kept up to date."""

    is_true = True

    def want(self, text: str) -> None:
        """Do nothing: the file has the inventory already."""

    def tell(self, happening: ConditionChange) -> None:
        logged(happening)

    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        return {}
