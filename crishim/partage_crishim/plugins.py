"""The plugin host, with its time measured and its life in the log."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

import structlog

from partage_crishim.settings import CrishimSettings
from partage_plugins.errors import PartageError
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.host.host import HostEvent
from partage_plugins.registry.finding import blocked_names, tracing
from partage_plugins.sides.node import Adjusted
from partage_plugins.vocabulary import Container, Granted, NodeName

_log = structlog.get_logger()


class MeasuredHost(PluginHost):
    """The plugin host; `took` is told the seconds of each question about a container."""

    def __init__(self, settings: HostSettings, *, took: Callable[[float], None]) -> None:
        super().__init__(settings, on_event=_tell)
        self._took = took

    async def adjust(self, container: Container, granted: Granted) -> Adjusted:
        """As the host does."""
        started = time.perf_counter()
        try:
            return await super().adjust(container, granted)
        finally:
            self._took(time.perf_counter() - started)


def host_settings(settings: CrishimSettings) -> HostSettings:
    """How the plugins' process is run."""
    return HostSettings(
        node=NodeName(settings.node_name),
        root=str(settings.root),
        blocked=blocked_names(os.environ),
        traced=tracing(os.environ),
        call_deadline_s=settings.plugin_deadline_s,
        memory_bytes=settings.plugin_memory_bytes,
    )


def _tell(event: HostEvent) -> None:
    if isinstance(event, PartageError):
        _log.error("the plugins' process ended", why=str(event))
        return
    _log.info("plugins loaded", kinds={str(kind): str(owner) for kind, owner in event.kinds.items()})
    for fault in event.faults:
        _log.error("plugin not loaded; containers of its kind are refused", why=fault)
    for name in event.unknown_blocked:
        _log.warning("a plugin is blocked that is not installed; is its name right?", plugin=name)
