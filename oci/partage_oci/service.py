"""The agent daemon: takes the machine's lock, and restores an earlier agent's holds before it serves requests."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Final

import structlog

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.life import Daemon
from partage_base.daemon.lock import alone
from partage_base.daemon.logs import Repeats
from partage_base.daemon.plugin_host import WatchedHost, host_settings
from partage_base.files import clear_unfinished
from partage_base.peers import Peer
from partage_oci.agent import Agent, AgentPolicy
from partage_oci.holds import Holds
from partage_oci.messages import Create, Go
from partage_oci.placement import Placement
from partage_oci.records import EngineRecords
from partage_oci.server import Server
from partage_oci.settings import AgentSettings
from partage_oci.stock import Stock
from partage_plugins.api import NodeName
from partage_plugins.api.places import ENGINES_FOLDER
from partage_plugins.errors import DecodeError, PartageError
from partage_scheduler.core import plugins

LOCK: Final = "run/partage/agent/lock"
_LOCK_WITHIN_S: Final = 10.0
_SAID_AGAIN_S: Final = 60.0
_INVENTORY: Final = "inventory"
_log = structlog.get_logger()


async def start(settings: AgentSettings, daemon: Daemon) -> AgentService:
    """Once this returns, `partage-oci` is served."""
    stack, root = daemon.stack, settings.root
    await stack.enter_async_context(alone(root / LOCK, "agent", within_s=_LOCK_WITHIN_S))
    clear_unfinished(root / ENGINES_FOLDER)
    registry, node = plugins(), NodeName(settings.node_name)
    placement = Placement(node, registry)
    stock = Stock(root, registry, placement.take_in)
    holds = Holds(placement, node, restart_hold_s=settings.restart_hold_s)
    host = WatchedHost(host_settings(settings, "oci"))
    stack.push_async_callback(host.stop)
    agent = Agent(
        placement=placement,
        holds=holds,
        records=EngineRecords(root),
        plugins=host,
        refresh=stock.refresh,
        policy=AgentPolicy(
            nvidia_runtime=settings.nvidia_runtime, hook=str(settings.hook or ""), enforcement=settings.enforce
        ),
    )
    stack.push_async_callback(agent.close)
    stock.refresh()
    try:
        agent.take_over()
    except DecodeError as error:
        folder = Path("/", ENGINES_FOLDER)
        raise BadConfiguration(
            f"what a container holds can't be read: {error}; remove its file from {folder} once it has ended"
        ) from None
    await host.start()
    server = Server(Counted(agent, holds, daemon), broken=daemon.end)
    stack.push_async_callback(server.close)
    await server.open(root)
    return AgentService(settings, daemon, agent, stock)


class Counted:
    """The agent, with metrics of its answers."""

    def __init__(self, agent: Agent, holds: Holds, daemon: Daemon) -> None:
        self._agent = agent
        self.delete, self.tell, self.wait = agent.delete, agent.tell, agent.wait
        metrics = daemon.metrics
        self._outcomes = metrics.counts(
            "partage_agent_creates_total", "Containers about to be created.", label="outcome"
        )
        metrics.read_gauge(
            "partage_agent_containers",
            "Containers that hold a share.",
            lambda: Counter[str](each.stage for each in holds),
            label="stage",
        )

    async def create(self, question: Create, peer: Peer) -> Go:
        try:
            answer = await self._agent.create(question, peer)
        except (PartageError, OSError):
            self._outcomes["refused"] += 1
            raise
        except Exception:
            self._outcomes["failed"] += 1
            raise
        self._outcomes["done"] += 1
        return answer


class AgentService:
    """A started daemon; see `partage_base.daemon.life.Running`."""

    def __init__(self, settings: AgentSettings, daemon: Daemon, agent: Agent, stock: Stock) -> None:
        self._settings, self._daemon, self._agent, self._stock = settings, daemon, agent, stock
        self._repeats = Repeats(every_s=_SAID_AGAIN_S)

    async def run(self, stopping: asyncio.Event) -> None:
        self._daemon.tasks.start(self._keep_looking(), name="looking")
        await stopping.wait()

    async def _keep_looking(self) -> None:
        while True:
            if why := self._stock.refresh():
                self._daemon.health.unready(_INVENTORY, why)
            else:
                self._daemon.health.ready(_INVENTORY)
            try:
                await self._agent.look()
            except OSError as error:
                self._repeats.failed("what has ended is not all taken away; it is tried again", error)
            await asyncio.sleep(self._settings.look_every_s)
