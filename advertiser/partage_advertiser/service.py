"""The advertiser daemon: inspects the node, writes the file, and keeps the API server up to date.

The file comes first and needs no API server: programs on the node must not wait for a remote one. A failed inspection
changes nothing that was published; if it keeps failing, the heartbeat stops, since the inventory may be outdated. On
exit everything is left in place for the next advertiser. `AdvertiserMetrics` has the latest measurements of the
devices, and the state of the loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from logging import ERROR
from typing import Final

import structlog
from msgspec.structs import replace

from partage_advertiser.broker_page import PATH as BROKER_PAGE
from partage_advertiser.broker_page import BrokerPage
from partage_advertiser.condition_changes import of_crishim, of_guarded
from partage_advertiser.findings import FindingsFolder
from partage_advertiser.heartbeat import LATE_BEATS
from partage_advertiser.inspection import FolderWatch, Inspector, api_server, inspecting
from partage_advertiser.inventory import InventoryFile, InventorySinks
from partage_advertiser.liveness_files import PauseFile, why_paused
from partage_advertiser.settings import AdvertiserSettings
from partage_advertiser.sinks import ClusterSink, LogSink, Sink
from partage_base.condition import Condition
from partage_base.daemon.exposition import Family, Sample
from partage_base.daemon.life import Daemon
from partage_base.daemon.lock import alone
from partage_base.daemon.logs import Repeats
from partage_base.daemon.metrics import Metrics
from partage_base.event_wait import set_within
from partage_base.files import clear_unfinished
from partage_base.kube import ApiServer
from partage_plugins.api.node import Gauge
from partage_plugins.api.places import ADVERTISER_LOCK, INVENTORY_FILE, PAUSE_FOLDER
from partage_plugins.errors import PartageError

_LOOK_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)


class AdvertiserMetrics:
    def __init__(self, metrics: Metrics, node: str, keys: Callable[[], Sequence[str] | None]) -> None:
        """`keys` returns the ids of the keys that crishim trusts; None if crishim reports nothing."""
        self._node, self._keys = node, keys
        self._gauges: Sequence[Gauge] = ()
        outcomes = partial(metrics.counts, label="outcome")
        self.looks = outcomes("partage_advertiser_looks_total", "Looks at the devices.")
        self.patches = outcomes("partage_advertiser_patches_total", "Writes of the annotation.")
        self.heartbeats = outcomes("partage_advertiser_heartbeats_total", "Renewals of the Lease.")
        self.events = outcomes("partage_advertiser_events_total", "Events on the Node.")
        self.look_seconds = metrics.histogram(
            "partage_advertiser_look_seconds", "What a look at the devices took.", buckets=_LOOK_BUCKETS
        )
        self.is_published = metrics.gauge(
            "partage_advertiser_published", "1 while the API server has the inventory that the node has."
        )
        metrics.collect(self._of_devices)
        metrics.collect(self._of_keys)

    def measured(self, gauges: Sequence[Gauge]) -> None:
        self._gauges = tuple(gauges)

    def _of_devices(self) -> Iterator[Family]:
        by_name: dict[str, list[Sample]] = {}
        for gauge in self._gauges:
            by_name.setdefault(gauge.name, []).append(Sample(gauge.value, {"node": self._node, **gauge.labels}))
        for name, samples in sorted(by_name.items()):
            yield Family(f"partage_{name}", "gauge", "As a plugin measured it.", tuple(samples))

    def _of_keys(self) -> Iterator[Family]:
        keys, node = self._keys(), {"node": self._node}
        count = () if keys is None else (Sample(len(keys), node),)
        each = tuple(Sample(1, {**node, "key": key}) for key in keys or ())
        yield Family("partage_node_keys", "gauge", "Keys by which the node believes allocations.", count)
        yield Family("partage_node_key_info", "gauge", "A key by which it believes them; always 1.", each)


_TICK_S: Final = 1.0
"""The interval of liveness checks."""
_LOCK_WITHIN_S: Final = 10.0
_log = structlog.get_logger()


async def start(settings: AdvertiserSettings, daemon: Daemon) -> Advertiser:
    """Take the node's lock, load plugins, and write the file if the devices answer.

    On exit what was published stays.
    """
    stack, root, loop = daemon.stack, settings.root, asyncio.get_running_loop()
    await stack.enter_async_context(alone(root / ADVERTISER_LOCK, "advertiser", within_s=_LOCK_WITHIN_S))
    clear_unfinished((root / INVENTORY_FILE).parent, root / PAUSE_FOLDER)
    server = await stack.enter_async_context(api_server(settings))
    woken = asyncio.Event()

    def wake() -> None:  # called by plugins from any thread
        loop.call_soon_threadsafe(woken.set)

    inspector = await stack.enter_async_context(inspecting(settings, server, wake=wake))
    advertiser = Advertiser(settings, daemon, server, inspector, woken)
    await advertiser.look()
    return advertiser


class Advertiser:
    def __init__(
        self,
        settings: AdvertiserSettings,
        daemon: Daemon,
        server: ApiServer | None,
        inspector: Inspector,
        woken: asyncio.Event,
    ) -> None:
        root = settings.root
        self._settings, self._daemon = settings, daemon
        self._inspector, self._woken = inspector, woken
        self._folders, self._findings = FolderWatch(root), FindingsFolder(root)
        self._metrics = metrics = AdvertiserMetrics(daemon.metrics, settings.node_name, inspector.readiness.known_keys)
        self._repeats = Repeats(every_s=60)
        self._crishim = Condition()
        self._looked_s = self._looked_well_s = float("-inf")
        self._sink: Sink = (
            LogSink()
            if server is None
            else ClusterSink(
                server,
                settings,
                beats=self._is_true,
                keys=inspector.readiness.keys,
                versions=inspector.readiness.versions,
                on_labels=partial(_pause, PauseFile(root), woken.set),
                patched=metrics.patches.add,
                beaten=metrics.heartbeats.add,
                sent=metrics.events.add,
            )
        )
        self._sinks = InventorySinks(InventoryFile(root), self._sink)
        daemon.pages[BROKER_PAGE] = BrokerPage(root)

    async def run(self, stopping: asyncio.Event) -> None:
        """Run the inspection loop and the sinks' background work."""
        tasks = self._daemon.tasks
        tasks.start(self._keep_looking(), name="looking")
        for name, work in {**self._sink.work(), **self._inspector.work()}.items():
            tasks.start(work, name=name)
        await stopping.wait()

    async def _keep_looking(self) -> None:
        while True:
            is_woken = await set_within(self._woken, _TICK_S)
            if is_woken:
                self._woken.clear()
            is_due = time.monotonic() - self._looked_s >= self._settings.look_every_s
            if is_woken or is_due or self._folders.anything():
                await self.look()
            else:
                self._refresh_readiness()
            self._tell_findings()
            self._metrics.is_published.set(float(self._sink.is_true))

    async def look(self) -> None:
        """Inspect the node, and publish changes."""
        started = time.perf_counter()
        try:
            self._sinks.tell(await self._inspector.look(self._sinks.told))
            if self._settings.metrics_address:
                self._metrics.measured(await self._inspector.samples())
        except PartageError as error:
            self._looked_badly(error)
            return
        finally:
            self._looked_s = time.monotonic()
            self._metrics.look_seconds.observe(time.perf_counter() - started)
        self._metrics.looks.add("done")
        self._looked_well_s = time.monotonic()
        self._daemon.health.ready("devices")

    def _looked_badly(self, error: PartageError) -> None:
        self._metrics.looks.add("failed")
        self._daemon.health.unready("devices", str(error))
        why = str(error)
        self._repeats.say("what is on this node is not told; it will be tried again", key=why, level=ERROR, why=why)

    def _refresh_readiness(self) -> None:
        """Between inspections, publish at once that a daemon came or went."""
        told, ready = self._sinks.told, self._inspector.readiness.now()
        if told is None or ready == told.ready:
            return
        try:
            self._sinks.tell(replace(told, ready=ready))
        except PartageError as error:
            self._looked_badly(error)

    def _tell_findings(self) -> None:
        """Report new findings of the broker and faults of crishim, which have no access to the API server."""
        before, self._crishim = self._crishim, self._inspector.readiness.crishim_says()
        faults = (of_crishim(fault) for fault in self._crishim.faults if fault not in before.faults)
        guarded = (of_guarded(each) for each in self._crishim.guarded if each not in before.guarded)
        for happening in (*self._findings.news(), *faults, *guarded):
            self._sink.tell(happening)

    def _is_true(self) -> bool:
        """Whether the API server has the result of a recent inspection."""
        late_s = LATE_BEATS * max(self._settings.heartbeat_s, self._settings.look_every_s)
        is_fresh = time.monotonic() - self._looked_well_s < late_s
        return is_fresh and self._sink.is_true


def _pause(file: PauseFile, wake: Callable[[], None], labels: Mapping[str, str]) -> None:
    why = why_paused(labels)
    try:
        is_new = file.say(why)
    except OSError as error:
        _log.error("cannot write the pause file for the GPU operator", why=str(error))
        return
    if is_new:
        _log.info("paused for the GPU operator" if why else "the GPU operator is done", why=why)
        wake()
