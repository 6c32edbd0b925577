"""Whether a service of this machine answers: each is asked what only one that works can answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from partage_base.cri import CriError, UnaryClient
from partage_cli.machine.places import CONTAINERD_SOCKET, CRISHIM_SOCKET, DRIVER
from partage_cli.machine.setup import services
from partage_cli.machine.wire.messages import MANAGER_SOCKET, MAX_QUESTION_BYTES, Hello, read_answer
from partage_isolation.wire.client import BrokerClient
from partage_plugins.codecs import decode_inventory
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.places import INVENTORY_FILE
from partage_simgpu.control import control

_DEADLINE_S: Final = 2.0
_VERSION: Final = "/runtime.v1.RuntimeService/Version"


async def why_not_ready(name: str, root: Path) -> str | None:
    """Of one service, by its name."""
    return await _PROBES[name](root)


async def why_not_whole(root: Path) -> str | None:
    """Whether containers may be placed: the inventory says that crishim and the broker are in force."""
    read = await asyncio.to_thread(_inventory, root)
    if isinstance(read, str):
        return read
    ready = read.ready
    missing = [name for name, is_there in (("crishim", ready.crishim), ("the broker", ready.broker)) if not is_there]
    return f"{' and '.join(missing)} gave no sign of life yet" if missing else None


async def _runtime(socket: Path) -> str | None:
    with closing(UnaryClient(socket)) as client:
        try:
            await client.call(_VERSION, b"", deadline_s=_DEADLINE_S)
        except CriError as error:
            return str(error)
    return None


async def _containerd(root: Path) -> str | None:
    return await _runtime(root / CONTAINERD_SOCKET)


async def _crishim(root: Path) -> str | None:
    return await _runtime(root / CRISHIM_SOCKET)


async def _broker(root: Path) -> str | None:
    return await _asked(lambda: BrokerClient(root, deadline_s=_DEADLINE_S).tell())


async def _simulation(root: Path) -> str | None:
    return await _asked(lambda: control(root / DRIVER, "status"))


async def _asked(question: Callable[[], object]) -> str | None:
    try:
        await asyncio.to_thread(question)
    except (PartageError, OSError) as error:
        return str(error)
    return None


async def _cards(root: Path) -> str | None:
    read = await asyncio.to_thread(_inventory, root)
    if isinstance(read, str):
        return read
    part = read.part(GPU)
    return None if part is not None and part.cards else "it has found no card yet"


def _inventory(root: Path) -> Inventory | str:
    path = root / INVENTORY_FILE
    try:
        return decode_inventory(path.read_bytes(), (GPU,))
    except (PartageError, OSError) as error:
        return str(error)


async def _manager(root: Path) -> str | None:
    try:
        async with asyncio.timeout(_DEADLINE_S):
            reader, writer = await asyncio.open_unix_connection(root / MANAGER_SOCKET, limit=MAX_QUESTION_BYTES)
            try:
                hello = read_answer(await reader.readline())
            finally:
                writer.close()
    except (PartageError, OSError, TimeoutError, ValueError) as error:
        return str(error) or "it does not answer"
    return None if isinstance(hello, Hello) else "it does not say hello"


_PROBES: Final[Mapping[str, Callable[[Path], Awaitable[str | None]]]] = {
    services.SIMULATION: _simulation,
    services.CONTAINERD: _containerd,
    services.BROKER: _broker,
    services.CRISHIM: _crishim,
    services.INVENTORY: _cards,
    services.MANAGER: _manager,
}
