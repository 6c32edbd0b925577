"""One instance of a node plugin behind the real `NodeFramework`, or in the real plugin host."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Any, Self

from partage_plugins.api.containers import Adjustment, Container, Granted
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.names import ContainerKey, NodeName
from partage_plugins.api.node import NodeContext, NodeRole
from partage_plugins.framework.node import Adjusted, NodeFramework
from partage_plugins.hooks import node as node_hooks
from partage_plugins.host import HostSettings, PluginHost
from partage_plugins.host.messages import Started
from partage_plugins.registry.calls import bound
from partage_plugins.testing.check import Case, hold, loaded, owned
from partage_plugins.testing.granted import GrantedContainer
from partage_plugins.testing.neighbours import node_paths

NODE = NodeName("node-0")


class NodeStage:
    """A new instance of the subject, loaded beside its neighbours."""

    def __init__(self, case: Case) -> None:
        self.subject = case.subject
        self.registry = loaded(case, node_hooks, node_paths(case.subject))
        self.framework = NodeFramework(self.registry, activity=case.activity)
        self._adjust = bound(self.registry, "partage_adjust", case.activity, traced=False)
        self._case = case

    @property
    def kind(self) -> AnyKind:
        """The kind that the subject owns."""
        return owned(self.registry, self.subject)

    def started(self, role: NodeRole = "crishim", *, root: PurePosixPath | None = None) -> NodeStage:
        """Starts the plugins on a node with the subject's files, and returns itself."""
        where = root or PurePosixPath(self._case.root())
        faults = self.framework.started(NodeContext(node=NODE, role=role, root=where, wake=_woken))
        hold(not faults, "; ".join(map(str, faults)))
        return self

    def stopped(self) -> None:
        faults = self.framework.stopping()
        hold(not faults, "; ".join(map(str, faults)))

    def adjusted(self, given: GrantedContainer) -> Adjusted:
        """All plugins' changes to a container."""
        return self.framework.adjust(given.container, given.typed(self.registry.kinds))

    def own_adjustment(self, container: Container, granted: Granted) -> Adjustment | None:
        """The subject's own changes, before merging."""
        for call in self._adjust:
            if call.plugin == self.subject.name:
                answer: Any = call(container, granted)
                return answer if isinstance(answer, Adjustment) else None
        return None


def python_path() -> str:
    """The module search path for the host's child: it finds every module that this process finds."""
    return os.pathsep.join(entry or str(Path.cwd()) for entry in sys.path)


def host_of(case: Case) -> RunningHost:
    """The real plugin host with the subject and its neighbours, in a process that ends with its check."""
    os.environ["PYTHONPATH"] = python_path()
    settings = HostSettings(
        node=NODE,
        root=str(case.root()),
        paths=node_paths(case.subject),
        call_deadline_s=case.subject.limits.call_s,
        memory_bytes=case.subject.limits.memory_bytes,
    )
    return RunningHost(settings)


def host_with(plugins: Mapping[str, str], root: Path) -> RunningHost:
    """The real plugin host with these plugins, `module:Class` by name."""
    return RunningHost(HostSettings(node=NODE, root=str(root), paths=dict(plugins)))


def _woken() -> None:
    """Accepts plugins' requests to be called again, at any time."""


class RunningHost:
    """A plugin host with an event loop of its own, started on entry and stopped on exit."""

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
        """Which plugins were loaded, and the errors of the others."""
        if self._started is None:
            raise RuntimeError("this host was not entered")
        return self._started

    def adjust(self, container: Container, granted: Granted) -> Adjusted:
        """The changes to this container; `granted` holds raw JSON, as decoded without kinds."""
        return self._runner.run(self._host.adjust(container, granted))

    def removed(self, key: ContainerKey) -> None:
        """Cleans up after a container."""
        self._runner.run(self._host.removed(key))

    def stop(self) -> None:
        """Stops the plugins; the next call starts them again."""
        self._runner.run(self._host.stop())
