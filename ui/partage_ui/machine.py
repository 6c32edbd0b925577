"""The state of one machine from its broker, queried while the page is served; and sign-in by a one-time token."""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from partage_base.daemon.settings import host_name
from partage_base.inventory_file import InventoryFile
from partage_cli.nodes.reports import NodeReport, Report
from partage_isolation.wire.client import BrokerClient
from partage_plugins.api.inventory import Ready
from partage_plugins.errors import PartageError
from partage_ui.board import Board
from partage_ui.facts import Facts, NodeTold, Scope, node_told
from partage_ui.history import History
from partage_ui.viewers import Person, Viewer

EVERY_S: Final = 2.0
TOKEN_LASTS_S: Final = 600.0


class MachineReader:
    def __init__(self, root: Path, board: Board) -> None:
        self._board, self._broker, self._inventory = board, BrokerClient(root), InventoryFile(root)
        self._history = History()

    async def run(self) -> None:
        while True:
            await self.read()
            await asyncio.sleep(EVERY_S)

    async def read(self) -> None:
        self._board.put(await asyncio.to_thread(self._facts))

    def _facts(self) -> Facts:
        now, host = datetime.now(UTC), host_name()
        found = self._inventory.current()
        cards = found.gpu.cards if found is not None and found.gpu is not None else ()
        told, why = self._told(now)
        node = NodeReport(node=host, ready=Ready(crishim=True, broker=not why, why=why), why=why, cards=cards)
        return Facts(
            at=now,
            is_cluster=False,
            nodes=Report(nodes=(node,)),
            told={host: told},
            troubles=(why,) if why else (),
        )

    def _told(self, now: datetime) -> tuple[NodeTold, str]:
        try:
            told = self._broker.tell()
        except PartageError as error:
            return NodeTold(at=now, why=str(error)), str(error)
        return node_told(host_name(), told, self._history, now), ""


class OnceDoor:
    """Accepts the token that the command printed, once: whoever reads the terminal is root already."""

    def __init__(self) -> None:
        self.token = secrets.token_urlsafe(24)
        self._until = time.monotonic() + TOKEN_LASTS_S

    async def enter(self, token: str) -> Person | None:
        is_it = hmac.compare_digest(token.encode(errors="replace"), self.token.encode())
        if not is_it or time.monotonic() > self._until:
            return None
        self._until = 0.0
        return Person(username="root")

    async def scope(self, viewer: Viewer, facts: Facts, namespace: str) -> Scope:  # noqa: ARG002
        """Everything on the machine."""
        return Scope()
