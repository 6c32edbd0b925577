"""The real plugin host for callers that have no event loop: the kit's checks, and tests that are plain functions."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.host.messages import Started
from partage_plugins.sides.node import Adjusted
from partage_plugins.vocabulary.containers import Container, Granted
from partage_plugins.vocabulary.names import ContainerKey


class RunningHost:
    """A plugin host with a loop of its own, started when entered and stopped when left."""

    def __init__(self, settings: HostSettings) -> None:
        self._runner = asyncio.Runner()
        self._host = PluginHost(settings)
        self._started: Started | None = None

    def __enter__(self) -> Self:
        try:
            self._started = self._runner.run(self._host.start())
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop()
        finally:
            self._runner.close()

    @property
    def started(self) -> Started:
        """What was loaded, and what was not and why."""
        if self._started is None:
            raise RuntimeError("this host was not entered")
        return self._started

    def adjust(self, container: Container, granted: Granted) -> Adjusted:
        """What must change in this container; `granted` holds raw JSON, as decoded without kinds."""
        return self._runner.run(self._host.adjust(container, granted))

    def removed(self, key: ContainerKey) -> None:
        """Cleans up after a container."""
        self._runner.run(self._host.removed(key))

    def stop(self) -> None:
        """Lets the plugins end; the next question starts them again."""
        self._runner.run(self._host.stop())
