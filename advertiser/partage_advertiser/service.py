"""The advertiser as a daemon: looks, writes the file, and keeps what the API server has true.

The file comes first and needs no API server: what runs on the node must not wait for what is far away. A look that
fails changes nothing that was told, and stops the heartbeat if it goes on failing: what stands may be out of date then.
At the end everything stays as it stands, for the next one to find.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Final

import structlog
from msgspec.structs import replace

from partage_advertiser.assembling import NodeView, api_server
from partage_advertiser.events import Events
from partage_advertiser.findings import FindingsFolder
from partage_advertiser.happenings import of_crishim
from partage_advertiser.heartbeat import LATE_BEATS, Heartbeat
from partage_advertiser.inventory_file import InventoryFile
from partage_advertiser.metrics import AdvertiserMetrics
from partage_advertiser.noticing import FolderWatch
from partage_advertiser.outlets import Outlets
from partage_advertiser.pause import PauseFile, why_paused
from partage_advertiser.publisher import Publisher
from partage_advertiser.settings import AdvertiserSettings
from partage_base.condition import Fault
from partage_base.daemon.life import Daemon
from partage_base.daemon.lock import alone
from partage_base.daemon.logs import Repeats
from partage_base.files import clear_unfinished
from partage_base.kube import ApiServer
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary.places import ADVERTISER_LOCK, INVENTORY_FILE, PAUSE_FOLDER

_TICK_S: Final = 1.0
"""How often signs of life are looked at."""
_LOCK_WITHIN_S: Final = 10.0
_log = structlog.get_logger()


async def start(settings: AdvertiserSettings, daemon: Daemon) -> AdvertiserService:
    """Brings it up, alone on this node; what a start that failed had taken is given back too."""
    await daemon.stack.enter_async_context(
        alone(settings.root / ADVERTISER_LOCK, "advertiser", within_s=_LOCK_WITHIN_S)
    )
    service = AdvertiserService(settings, daemon)
    daemon.stack.push_async_callback(service.stop)
    await service.start()
    return service


class AdvertiserService:
    """A `partage_base.daemon.life.Running`, once it has come up."""

    def __init__(self, settings: AdvertiserSettings, daemon: Daemon) -> None:
        self._settings = settings
        self._daemon = daemon
        self._loop = asyncio.get_running_loop()
        self._pause = PauseFile(settings.root)
        self._noticing = FolderWatch(settings.root)
        self._findings = FindingsFolder(settings.root)
        self._figures = AdvertiserMetrics(daemon.metrics, settings.node_name)
        self._repeats = Repeats(every_s=60)
        self._crishim_faults: tuple[Fault, ...] = ()
        self._woken = asyncio.Event()
        self._looked_s = self._looked_well_s = float("-inf")
        self._server: ApiServer | None = None
        self._eyes: NodeView | None = None
        self._publisher: Publisher | None = None
        self._events: Events | None = None
        self._outlets: Outlets | None = None

    async def start(self) -> None:
        """Plugins are loaded, and the file true if the devices answer."""
        root = self._settings.root
        clear_unfinished((root / INVENTORY_FILE).parent, root / PAUSE_FOLDER)
        self._server = await api_server(self._settings)
        self._eyes = NodeView(self._settings, self._server, wake=self._wake)
        node, figures = self._settings.node_name, self._figures
        self._events = Events(self._server, node, sent=lambda outcome: figures.events.update([outcome]))
        self._publisher = Publisher(
            self._server,
            node,
            on_labels=self._on_labels,
            patched=lambda outcome: figures.patches.update([outcome]),
        )
        self._outlets = Outlets(InventoryFile(self._settings.root), self._publisher, self._events)
        await self._look()

    async def run(self, stopping: asyncio.Event) -> None:
        """Goes on looking, and tells the cluster."""
        if self._server is None or self._publisher is None or self._events is None:
            raise RuntimeError("run before start")
        figures = self._figures
        heartbeat = Heartbeat(
            self._server,
            namespace=self._settings.namespace,
            node=self._settings.node_name,
            every_s=self._settings.heartbeat_s,
            node_uid=self._node_uid,
            beats=self._is_true,
            beaten=lambda outcome: figures.heartbeats.update([outcome]),
        )
        tasks = self._daemon.tasks
        tasks.start(self._keep_looking(), name="looking")
        tasks.start(self._publisher.run(), name="publishing")
        tasks.start(heartbeat.run(), name="heartbeat")
        tasks.start(self._events.run(), name="events")
        await stopping.wait()

    async def stop(self) -> None:
        """Lets go of devices and connections; what was told stays."""
        try:
            if self._eyes is not None:
                await self._eyes.close()
        finally:
            if self._server is not None:
                await self._server.close()

    def _wake(self) -> None:
        """May be called from any thread."""
        self._loop.call_soon_threadsafe(self._woken.set)

    async def _keep_looking(self) -> None:
        while True:
            if await self._woken_within(_TICK_S) or self._is_due() or self._noticing.anything():
                await self._look()
            else:
                self._refresh_readiness()
            self._tell_findings()
            self._figures.is_published.set(float(self._publisher is not None and self._publisher.is_true))

    async def _woken_within(self, seconds: float) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True

    def _is_due(self) -> bool:
        return time.monotonic() - self._looked_s >= self._settings.look_every_s

    async def _look(self) -> None:
        if self._eyes is None or self._outlets is None:
            raise RuntimeError("a look before the start")
        started = time.perf_counter()
        try:
            self._outlets.tell(await self._eyes.looker.look(self._outlets.told))
            if self._settings.metrics_address:
                self._figures.measured(await self._eyes.looker.samples())
        except PartageError as error:
            self._looked_badly(error)
            return
        finally:
            self._looked_s = time.monotonic()
            self._figures.look_seconds.observe(time.perf_counter() - started)
        self._figures.looks.update(["done"])
        self._looked_well_s = time.monotonic()
        self._daemon.health.ready("devices")

    def _looked_badly(self, error: PartageError) -> None:
        self._figures.looks.update(["failed"])
        self._daemon.health.unready("devices", str(error))
        if (silent := self._repeats.due(str(error))) is not None:
            _log.error("what is on this node is not told; it will be tried again", why=str(error), repeats=silent)

    def _refresh_readiness(self) -> None:
        """Between looks; a daemon that came or went is told at once."""
        if self._outlets is None or self._outlets.told is None or self._eyes is None:
            return
        told, ready = self._outlets.told, self._eyes.readiness.now()
        if ready == told.ready:
            return
        try:
            self._outlets.tell(replace(told, ready=ready))
        except PartageError as error:
            self._looked_badly(error)

    def _tell_findings(self) -> None:
        """What the broker found wrong since, and crishim with itself: they have no way to the API server."""
        if self._events is None or self._eyes is None:
            return
        before, self._crishim_faults = self._crishim_faults, self._eyes.readiness.crishim_faults()
        new = (of_crishim(fault) for fault in self._crishim_faults if fault not in before)
        for happening in (*self._findings.news(), *new):
            self._events.tell(happening)

    def _is_true(self) -> bool:
        """Whether what the API server has is what a look showed lately."""
        late_s = LATE_BEATS * max(self._settings.heartbeat_s, self._settings.look_every_s)
        is_fresh = time.monotonic() - self._looked_well_s < late_s
        return is_fresh and self._publisher is not None and self._publisher.is_true

    def _node_uid(self) -> str:
        return self._publisher.node_uid if self._publisher else ""

    def _on_labels(self, labels: Mapping[str, str]) -> None:
        why = why_paused(labels)
        try:
            is_new = self._pause.say(why)
        except OSError as error:
            _log.error("the pause for a driver upgrade can't be written down", why=str(error))
            return
        if is_new:
            _log.info("paused for a driver upgrade" if why else "the driver upgrade is over", why=why)
            self._wake()
