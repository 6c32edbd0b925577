"""The plugin host of a node's daemon: its settings, and the logging of its life cycle."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import structlog
from msgspec import Meta

from partage_base.daemon.settings import CommonSettings, Setting
from partage_plugins.api import NodeName
from partage_plugins.api.node import NodeRole
from partage_plugins.errors import PartageError
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.host.host import HostEvent
from partage_plugins.host.messages import Started
from partage_plugins.registry.entry_points import blocked_names, tracing

_log = structlog.get_logger()


class PluginHostSettings(CommonSettings, frozen=True, kw_only=True):
    """Settings of a daemon that calls node plugins."""

    plugin_deadline_s: Annotated[
        float, Meta(gt=0, le=30), Setting("A plugin that takes longer than this for one container or claim is killed.")
    ] = 5.0
    plugin_memory_bytes: Annotated[
        int, Meta(ge=128 << 20), Setting("What the process of the plugins may allocate.")
    ] = 512 << 20


def host_settings(settings: PluginHostSettings, role: NodeRole, *, host: Path = Path("/")) -> HostSettings:
    """The settings of the plugin process; `host` is where a daemon in a container has the host's root mounted."""
    return HostSettings(
        node=NodeName(settings.node_name),
        root=str(settings.root),
        driver_root=str(settings.driver_root),
        host=str(host),
        role=role,
        blocked=blocked_names(os.environ),
        traced=tracing(os.environ),
        call_deadline_s=settings.plugin_deadline_s,
        memory_bytes=settings.plugin_memory_bytes,
    )


async def started_once(settings: HostSettings) -> Started:
    """Starts the plugin host, returns which plugins loaded, and stops it, for a check; raises `PartageError`."""
    host = PluginHost(settings)
    try:
        return await host.start()
    finally:
        await host.stop()


class WatchedHost(PluginHost):
    """The plugin host of a daemon that keeps serving without it."""

    def __init__(self, settings: HostSettings) -> None:
        super().__init__(settings, on_event=self._heard)
        self.is_up = False
        """Whether the plugin process was running at the last event."""
        self.faults: tuple[str, ...] = ()
        """Why it is not running, or which plugins are missing in it."""

    async def try_start(self) -> None:
        """Starts it if it is not running; a failure is recorded in `faults`."""
        try:
            await self.start()
        except PartageError as error:
            self.is_up, self.faults = False, (str(error),)
        except OSError as error:  # no process, descriptor or memory available
            self.is_up, self.faults = False, (f"the plugins' process cannot be made: {error.strerror or error}",)
            _log.error("cannot start the plugin process", why=str(error))

    async def restart(self) -> None:
        await self.stop()
        await self.try_start()

    def _heard(self, event: HostEvent) -> None:
        self.is_up = not isinstance(event, PartageError)
        if isinstance(event, PartageError):
            self.faults = (str(event),)
            _log.error("the plugin process ended", why=str(event))
            return
        self.faults = event.faults
        _log.info("plugins loaded", kinds={str(kind): str(owner) for kind, owner in event.kinds.items()})
        for fault in event.faults:
            _log.error("plugin not loaded; containers that request its kind are refused", why=fault)
        for name in event.unknown_blocked:
            _log.warning("a blocked plugin is not installed; is its name right?", plugin=name)
