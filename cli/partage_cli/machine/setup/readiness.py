"""Readiness of a machine's services: each gets a request that only a working service can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from partage_cli.machine.setup import services
from partage_isolation.wire.client import BrokerClient
from partage_oci.client import AgentClient
from partage_plugins.api import GPU
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import PartageError

_DEADLINE_S: Final = 2.0


async def why_not_ready(name: str, root: Path) -> str | None:
    """Why the service of that name is not ready, or None."""
    try:
        return await asyncio.to_thread(_PROBES[name], root)
    except (PartageError, OSError) as error:
        return str(error)


async def why_not_whole(root: Path) -> str | None:
    """Why containers can't get a share yet, or None: the inventory must report that the broker is in force."""
    try:
        read = await asyncio.to_thread(_inventory, root)
    except (PartageError, OSError) as error:
        return str(error)
    return None if read.ready.broker else "the broker gave no sign of life yet"


def _broker(root: Path) -> None:
    BrokerClient(root, deadline_s=_DEADLINE_S).tell()


def _agent(root: Path) -> None:
    AgentClient(root, deadline_s=_DEADLINE_S).tell()


def _simulation(root: Path) -> None:
    from partage_cli.machine.setup import simulation  # noqa: PLC0415  a distribution of its own

    simulation.ask(root)


def _cards(root: Path) -> str | None:
    part = _inventory(root).part(GPU)
    return None if part is not None and part.cards else "it has found no card yet"


def _inventory(root: Path) -> Inventory:
    return decode_inventory((root / INVENTORY_FILE).read_bytes(), (GPU,))


_PROBES: Final[Mapping[str, Callable[[Path], str | None]]] = {
    services.SIMULATION: _simulation,
    services.BROKER: _broker,
    services.INVENTORY: _cards,
    services.AGENT: _agent,
}
