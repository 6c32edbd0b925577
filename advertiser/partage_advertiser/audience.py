"""Who hears of the inventory beside the programs of this node: a cluster, or only the log of a machine without one."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Protocol

from partage_advertiser.events import Events, logged
from partage_advertiser.happenings import Happening
from partage_advertiser.heartbeat import Heartbeat
from partage_advertiser.publisher import Publisher
from partage_advertiser.resizes import ResizeFiles
from partage_advertiser.settings import AdvertiserSettings
from partage_base.kube import ApiServer

Counted = Callable[[str], None]
"""Called with an outcome."""


class Audience(Protocol):
    def want(self, text: str) -> None:
        """From now on this is the inventory."""

    def tell(self, happening: Happening) -> None: ...

    @property
    def is_true(self) -> bool:
        """Whether all that was wanted is where it should be, as far as we know."""
        ...

    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """What goes on for as long as the advertiser lives, by name."""
        ...


class Cluster:
    """The annotation of the Node, Events on it, and a Lease with the node's keys, for as long as `beats` vouches."""

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
            beaten=beaten,
        )

    def want(self, text: str) -> None:
        self._publisher.want(text)

    def tell(self, happening: Happening) -> None:
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


class OwnLog:
    """Of a machine that is in no cluster: the file is all that there is to keep true."""

    is_true = True

    def want(self, text: str) -> None:
        """The file says it already."""

    def tell(self, happening: Happening) -> None:
        logged(happening)

    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        return {}
