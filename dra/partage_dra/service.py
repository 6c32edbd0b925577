"""The DRA driver daemon: takes the node's lock, serves kubelet, and publishes the node's devices.

Kubelet is served from the start, even while the API server is away. On exit everything is left in place for the next
driver: claims, files, the slices and kubelet's registration.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

import structlog
from grpclib.server import Server

from partage_base.claim_records import ClaimRecords
from partage_base.daemon.api_server import server_for
from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.life import Daemon
from partage_base.daemon.lock import alone
from partage_base.daemon.logs import Repeats
from partage_base.daemon.metrics import Metrics
from partage_base.daemon.plugin_host import WatchedHost, host_settings
from partage_base.event_wait import set_within
from partage_base.inventory_file import InventoryFile
from partage_base.kube import resource_claim_path
from partage_base.listener import listen
from partage_dra.claims import Claim
from partage_dra.holdings import Holdings
from partage_dra.kubelet.services import DeviceState, Health, Preparation, Registration
from partage_dra.preparer import Preparer
from partage_dra.publisher import Publisher
from partage_dra.settings import DraSettings
from partage_dra.slices import counters_of, devices_of
from partage_dra.spec_file import SpecFiles
from partage_dra.sysfs import pcie_roots
from partage_plugins.api.claims import ClaimRecord, ClaimRef
from partage_plugins.api.names import NodeName
from partage_plugins.api.places import DRA_REGISTRATION, DRA_SOCKET
from partage_plugins.errors import PartageError

LOCK: Final = "run/partage/dra/lock"
_LOCK_WITHIN_S: Final = 10.0
_SAID_AGAIN_S: Final = 15.0
"""The interval in which all devices are reported to kubelet even without a change."""
_BUCKETS: Final = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0)
_log = structlog.get_logger()


class DraFigures:
    def __init__(self, metrics: Metrics, records: ClaimRecords) -> None:
        self.prepares = metrics.counts("partage_dra_prepares_total", "Claims that kubelet asked for.", label="outcome")
        self.writes = metrics.counts("partage_dra_slice_writes_total", "Writes of the ResourceSlice.", label="outcome")
        self.seconds = metrics.histogram("partage_dra_prepare_seconds", "What a prepare took.", buckets=_BUCKETS)
        metrics.read_gauge(
            "partage_dra_claims", "Claims that containers of this node may have.", lambda: len(records.uids())
        )


class Measured:
    """The same claims, with metrics."""

    def __init__(self, preparing: Preparer, figures: DraFigures) -> None:
        self._preparing, self._figures = preparing, figures

    async def prepare(self, claim: ClaimRef) -> ClaimRecord:
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            record = await self._preparing.prepare(claim)
        except (PartageError, OSError):
            self._figures.prepares["refused"] += 1
            raise
        except Exception:
            self._figures.prepares["failed"] += 1
            raise
        self._figures.prepares["done"] += 1
        self._figures.seconds.observe(loop.time() - began)
        return record

    async def release(self, claim: ClaimRef) -> None:
        await self._preparing.release(claim)


class Devices:
    """The device states from the inventory, for all waiting streams."""

    def __init__(self) -> None:
        self._states: tuple[DeviceState, ...] | None = None
        self._changed = asyncio.Event()

    def are(self, states: tuple[DeviceState, ...]) -> None:
        if states != self._states:
            self._states = states
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def states(self) -> AsyncIterator[Sequence[DeviceState]]:
        while True:
            changed = self._changed
            if self._states is not None:
                yield self._states
            await set_within(changed, _SAID_AGAIN_S)


async def start(settings: DraSettings, daemon: Daemon) -> DraDriver:
    """Take the node's lock, restore an earlier driver's state, and serve kubelet."""
    stack, root = daemon.stack, settings.root
    await stack.enter_async_context(alone(root / LOCK, "DRA driver", within_s=_LOCK_WITHIN_S))
    server = await stack.enter_async_context(await server_for("dra", settings.kubeconfig))
    host = WatchedHost(host_settings(settings, "dra", host=settings.host))
    stack.push_async_callback(host.stop)
    records, inventory = ClaimRecords(root), InventoryFile(root)

    async def claim(ref: ClaimRef) -> Claim:
        return await server.get(resource_claim_path(ref.namespace, ref.name), Claim)

    preparing = Preparer(
        NodeName(settings.node_name),
        holdings=Holdings(records),
        specs=SpecFiles(root),
        inventory=inventory,
        host=host,
        claim=claim,
        cuts=settings.cuts,
        enforcement=settings.enforce,
    )
    preparing.take_over()
    await host.start()
    figures = DraFigures(daemon.metrics, records)
    publisher = Publisher(server, settings.node_name, wrote=figures.writes.add)
    driver = DraDriver(settings, daemon, preparing, inventory, publisher)
    await _serve(daemon, root / DRA_SOCKET, [Preparation(Measured(preparing, figures)), driver.health])
    endpoint = str(Path("/", DRA_SOCKET))
    registration = Registration(endpoint, registered=driver.registered)
    await _serve(daemon, root / DRA_REGISTRATION, [registration])
    return driver


async def _serve(daemon: Daemon, path: Path, services: list[Preparation | Health | Registration]) -> None:
    """Serve a socket that only root, and so kubelet, may connect to; the socket file stays for the next driver."""
    try:
        path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        listening = listen(path)
    except OSError as error:
        raise BadConfiguration(f"cannot listen on {path}: {error.strerror}; is kubelet's folder there?") from error
    server = Server(services)
    await server.start(sock=listening)

    async def end() -> None:
        server.close()
        await server.wait_closed()

    daemon.stack.push_async_callback(end)


class DraDriver:
    """A started daemon; see `partage_base.daemon.life.Running`."""

    def __init__(
        self,
        settings: DraSettings,
        daemon: Daemon,
        preparing: Preparer,
        inventory: InventoryFile,
        publisher: Publisher,
    ) -> None:
        self._settings, self._daemon, self._preparing = settings, daemon, preparing
        self._inventory, self._publisher, self._devices = inventory, publisher, Devices()
        self._is_registered = asyncio.Event()
        self._repeats = Repeats(every_s=30)
        self.health = Health(settings.node_name, self._devices.states)

    def registered(self) -> None:
        """Kubelet has registered this driver."""
        self._is_registered.set()

    async def run(self, stopping: asyncio.Event) -> None:
        self._daemon.tasks.start(self._keep_looking(), name="looking")
        self._daemon.tasks.start(self._publish(), name="publishing")
        await stopping.wait()

    async def _publish(self) -> None:
        await self._is_registered.wait()
        await self._publisher.run()

    async def _keep_looking(self) -> None:
        while True:
            self._look()
            try:
                await self._preparing.tidy()
            except OSError as error:
                self._repeats.failed("claims that have ended are not all taken away; it will be tried again", error)
            await asyncio.sleep(self._settings.look_every_s)

    def _look(self) -> None:
        known = self._inventory.current()
        if known is None or known.gpu is None:
            self._daemon.health.unready("inventory", "the node's inventory is missing; is partage-advertiser running?")
            return
        self._daemon.health.ready("inventory")
        cuts = self._settings.cuts
        roots = pcie_roots(self._settings.root, (card.pci for card in known.gpu.cards if card.pool == "dra"))
        devices, counters = devices_of(known.gpu, cuts, roots), counters_of(known.gpu, cuts)
        self._publisher.want(*((devices, counters) if self._settings.publish else ((), ())))
        self._devices.are(tuple(DeviceState(each, ", ".join(taint.value for taint in each.taints)) for each in devices))
