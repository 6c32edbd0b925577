"""The manager as a daemon: finds what runs, serves who asks, and leaves all as it is when it ends."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import structlog

from partage_base.cri import UnaryClient
from partage_base.cri.errors import CriError
from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.life import Daemon
from partage_base.daemon.lock import alone
from partage_base.keyring import KeyringError, load_signing_key
from partage_base.version import VERSION
from partage_cli.machine.grants.cards import CdiCards
from partage_cli.machine.manager.admission import Admission
from partage_cli.machine.manager.cri_engine import CriEngine
from partage_cli.machine.manager.grant_records import GrantRecords
from partage_cli.machine.manager.grants import Grants
from partage_cli.machine.manager.news import News
from partage_cli.machine.manager.pods import Pods
from partage_cli.machine.manager.questions import Questions
from partage_cli.machine.manager.runs import Runs
from partage_cli.machine.manager.server import Server
from partage_cli.machine.manager.settings import ManagerSettings
from partage_cli.machine.manager.store import Store
from partage_cli.machine.manager.usage import Gauge
from partage_cli.machine.places import MANAGER_LOCK
from partage_cli.machine.runtime.client import MachineRuntime
from partage_cli.machine.wire.messages import Hello
from partage_isolation.wire.client import BrokerClient
from partage_oci.placement import Placement
from partage_oci.stock import Stock
from partage_plugins.vocabulary import NodeName
from partage_scheduler.core import plugins

_LOCK_WITHIN_S: Final = 10.0
_INVENTORY_EVERY_S: Final = 0.5
_GRANTS_EVERY_S: Final = 1.0
_RUNTIME: Final = "runtime"
_INVENTORY: Final = "inventory"
_GRANTS: Final = "grants"
_log = structlog.get_logger()


async def start(settings: ManagerSettings, daemon: Daemon) -> Manager:
    """Alone on this machine. It is ready once it knows what runs."""
    root = settings.root
    await daemon.stack.enter_async_context(alone(root / MANAGER_LOCK, "manager", within_s=_LOCK_WITHIN_S))
    try:
        key = load_signing_key(settings.below_root(settings.signing_keys))
    except KeyringError as error:
        raise BadConfiguration(f"{error}; `partage up` makes a key") from None
    client = daemon.stack.enter_context(contextlib.closing(UnaryClient(settings.below_root(settings.runtime))))
    runtime = MachineRuntime(client)
    registry, news = plugins(), News()
    node, broker = NodeName(settings.node_name), BrokerClient(root)
    admission = Admission(Placement(node, registry), node, tuple(registry.kinds), key)
    stock = Stock(root, registry, admission.take_in)
    store = Store(runtime, root=root, ctr=settings.ctr, containerd=settings.below_root(settings.containerd))
    pods = Pods(CriEngine(runtime, root), admission, news)
    daemon.stack.push_async_callback(pods.close)
    records = GrantRecords(node, root, admission)
    grants = Grants(
        records,
        root=root,
        admission=admission,
        lender=broker,
        cards=CdiCards(root, settings.driver_root),
        refresh=stock.refresh,
    )
    daemon.stack.push_async_callback(grants.close)
    questions = Questions(
        pods=pods,
        grants=grants,
        grant_records=records,
        runs=Runs(pods, admission, store, stock, root),
        admission=admission,
        store=store,
        gauge=Gauge(broker),
        news=news,
        runtime=runtime,
        root=root,
    )
    manager = Manager(settings, daemon, pods, stock, runtime, grants)
    manager.read_inventory()
    records.take_over()
    await manager.find()
    server = Server(Hello(manager=VERSION, simulated=settings.simulated), questions)
    daemon.stack.push_async_callback(server.close)
    await server.open(root, settings.group)
    return manager


class Manager:
    """Implements `partage_base.daemon.life.Running` for the manager."""

    def __init__(  # noqa: PLR0913, PLR0917  its parts
        self,
        settings: ManagerSettings,
        daemon: Daemon,
        pods: Pods,
        stock: Stock,
        runtime: MachineRuntime,
        grants: Grants,
    ) -> None:
        self._settings, self._daemon, self._pods, self._stock, self._runtime = settings, daemon, pods, stock, runtime
        self._grants = grants
        self._said: dict[str, str] = {}

    async def run(self, stopping: asyncio.Event) -> None:
        self._daemon.tasks.start(self._keep_looking(), name="look")
        self._daemon.tasks.start(self._keep_inventory(), name="inventory")
        self._daemon.tasks.start(self._keep_grants(), name="grants")
        self._daemon.tasks.start(self._pods.until_broken(), name="pods")
        await stopping.wait()

    async def find(self) -> None:
        """What runs, before anybody is answered; as soon as the runtime can be asked."""
        while not await self._looked():  # noqa: ASYNC110  another program is waited for
            await asyncio.sleep(_INVENTORY_EVERY_S)
        await self._pods.known()

    def read_inventory(self) -> None:
        """What became free by it goes to who waits."""
        why = self._stock.refresh()
        if why:
            self._wrong(_INVENTORY, why)
        else:
            self._right(_INVENTORY)

    async def _looked(self) -> bool:
        """Whether the runtime was there. Its status is asked for too: to crishim that is the sign that it is used."""
        try:
            why_not = await self._runtime.status()
            await self._pods.look()
        except CriError as error:
            self._wrong(_RUNTIME, f"the container runtime does not answer: {error}")
            return False
        if why_not:
            self._wrong(_RUNTIME, f"the container runtime is not ready: {why_not}")
        elif self._right(_RUNTIME):
            self._pods.doubt()
        return True

    async def _keep_looking(self) -> None:
        while True:
            await asyncio.sleep(self._settings.look_every_s)
            await self._looked()
            await self._pods.rotate_logs(self._runtime, self._settings.root)

    async def _keep_inventory(self) -> None:
        while True:
            await asyncio.sleep(_INVENTORY_EVERY_S)
            self.read_inventory()

    async def _keep_grants(self) -> None:
        while True:
            try:
                await self._grants.tidy()
            except OSError as error:
                self._wrong(_GRANTS, f"{error.filename}: {error.strerror}; make room there")
            else:
                self._right(_GRANTS)
            await asyncio.sleep(_GRANTS_EVERY_S)

    def _wrong(self, what: str, why: str) -> None:
        self._daemon.health.unready(what, why)
        if self._said.get(what) != why:
            self._said[what] = why
            _log.error("something that the manager needs is away", what=what, why=why)

    def _right(self, what: str) -> bool:
        """Whether it was wrong before."""
        self._daemon.health.ready(what)
        if self._said.pop(what, None) is None:
            return False
        _log.info("what the manager needs is back", what=what)
        return True
