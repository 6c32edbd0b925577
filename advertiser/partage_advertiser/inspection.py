"""Collects the devices of this node from plugins and kubelet, and builds one inventory.

Plugins are called in a dedicated thread, one call at a time, so the event loop continues while a driver is slow. A call
that hangs is handled by the watchdog, which names the plugin and ends the process.

Between inspections only the mtimes of a few folders are checked, which is cheap. So an inspection follows within a
second when the driver is to be released, when kubelet allocated a device, or when a device plugin was registered.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, closing
from pathlib import Path, PurePosixPath
from typing import Any, Final, NamedTuple, TypeVar

from partage_advertiser.inventory import NoInventory
from partage_advertiser.kubelet import Kubelet, Pods
from partage_advertiser.liveness_files import Readiness
from partage_advertiser.other_drivers import OtherDrivers
from partage_advertiser.settings import AdvertiserSettings
from partage_base.cri import PodResources, UnaryClient
from partage_base.daemon.api_server import server_for
from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.plugins import load_all
from partage_base.kube import ApiServer
from partage_plugins.api import NodeName
from partage_plugins.api.inventory import Inventory, Reads
from partage_plugins.api.node import DeviceUse, Gauge, NodeContext
from partage_plugins.api.places import PAUSE_FOLDER
from partage_plugins.codecs import CRIT
from partage_plugins.errors import PartageError
from partage_plugins.framework.node import NodeFramework
from partage_plugins.hooks import NODE_GROUP
from partage_plugins.hooks import node as node_hooks
from partage_plugins.registry.entry_points import blocked_names, installed, tracing
from partage_plugins.registry.watchdog import Watchdog

T = TypeVar("T")
FOLDERS: Final = (PAUSE_FOLDER, "var/lib/kubelet/device-plugins", "var/lib/kubelet/plugins_registry")
"""A pause is a file in the first; kubelet renames its checkpoint into the second, and plugins listen in both."""


@asynccontextmanager
async def api_server(settings: AdvertiserSettings) -> AsyncGenerator[ApiServer | None]:
    """The API server, as this node's account; None without a cluster. Raises `BadConfiguration` without an account."""
    if not settings.cluster:
        yield None
        return
    async with await server_for("advertiser", settings.kubeconfig) as server:
        yield server


class ClusterSide(NamedTuple):
    """Device users that only the API server knows."""

    pods: Pods
    drivers: OtherDrivers


class Inspector:
    def __init__(
        self, framework: NodeFramework, readiness: Readiness, kubelet: Kubelet, cluster: ClusterSide | None
    ) -> None:
        """Without a `cluster`, kubelet is not queried: only partage hands out cards."""
        self._framework = framework
        self._kubelet, self._cluster = kubelet, cluster
        self.readiness = readiness
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="plugins")

    async def look(self, last: Inventory | None) -> Inventory:
        """The current inventory; raises `NoInventory` if a plugin fails, since a partial one would be wrong."""
        in_use = await self._in_use(last)
        try:
            parts = await self._asked(lambda: self._framework.discover(in_use))
        except PartageError as error:
            raise NoInventory(f"what is on this node can't be said: {error}") from error
        return Inventory(reads=Reads(crit=CRIT), ready=self.readiness.now(), kinds=parts)

    async def _in_use(self, last: Inventory | None) -> list[DeviceUse] | None:
        """Devices in use by others; None if unknown."""
        if self._cluster is None:
            return []
        uses = await self._kubelet.in_use()
        if uses is None:
            return None
        return [*await self._cluster.pods.without_ended(uses, last), *self._cluster.drivers.offered]

    def work(self) -> Mapping[str, Coroutine[Any, Any, None]]:
        """Background coroutines that run as long as the advertiser, by name."""
        return {} if self._cluster is None else {"other drivers": self._cluster.drivers.run()}

    async def samples(self) -> list[Gauge]:
        return await self._asked(self._framework.samples)

    async def stop(self) -> list[PartageError]:
        """Stop all plugins; returns the errors of doing so."""
        faults = await self._asked(self._framework.stopping)
        self._thread.shutdown()
        return list(faults)

    async def _asked(self, question: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, question)


@asynccontextmanager
async def inspecting(
    settings: AdvertiserSettings, server: ApiServer | None, *, wake: Callable[[], None]
) -> AsyncGenerator[Inspector]:
    """An inspector with all plugins started and watched for hangs; raises the first error of stopping them."""
    framework = _started_framework(settings, wake=wake)
    watchdog = Watchdog(framework.activity, deadline_s=settings.plugin_deadline_s)
    watchdog.start()
    with closing(UnaryClient(settings.below_root(settings.pod_resources))) as client:
        readiness = Readiness(settings.root, within_s=settings.ready_within_s)
        kubelet, cluster = Kubelet(PodResources(client), settings.root), None
        if server is not None:
            cluster = ClusterSide(Pods(server), OtherDrivers(server, settings.node_name, changed=wake))
        inspector = Inspector(framework, readiness, kubelet, cluster)
        try:
            yield inspector
        finally:
            try:
                faults = await inspector.stop()
            finally:
                watchdog.stop()
    for fault in faults:
        raise fault


def _started_framework(settings: AdvertiserSettings, *, wake: Callable[[], None]) -> NodeFramework:
    """All plugins, started; `BadConfiguration` lists every fault: some of a node's devices must not pass for all."""
    registry = load_all(node_hooks, installed(NODE_GROUP), blocked=blocked_names(os.environ))
    framework = NodeFramework(registry, traced=tracing(os.environ))
    context = NodeContext(
        node=NodeName(settings.node_name),
        role="advertiser",
        root=PurePosixPath(settings.root),
        wake=wake,
        driver_root=PurePosixPath(settings.driver_root),
    )
    if faults := framework.started(context):
        framework.stopping()
        raise BadConfiguration(*(f"{fault}; mend it, remove it, or block it" for fault in faults))
    return framework


class FolderWatch:
    """The folders whose changes trigger an early inspection."""

    def __init__(self, root: Path) -> None:
        self._folders = tuple(root / name for name in FOLDERS)
        self._seen = self._times()

    def anything(self) -> bool:
        """Whether one of them changed since the last call."""
        before, self._seen = self._seen, self._times()
        return self._seen != before

    def _times(self) -> tuple[int, ...]:
        return tuple(map(_time, self._folders))


def _time(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except OSError:  # missing, or not accessible
        return 0
