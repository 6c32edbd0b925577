"""Small things that the broker keeps in files of its own: what contexts take, and that it is the only one."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_isolation.errors import AnotherRuns, NoRows

STATE: Final = "run/partage/state"
ROWS: Final = f"{STATE}/rows"
_SIZES: Final = f"{STATE}/contexts.json"
_LOCK: Final = f"{STATE}/lock"
_AGAIN_S: Final = 0.05
LOCK_WITHIN_S: Final = 10.0


def make_state_folder(root: Path) -> None:
    """For root alone; raises `NoRows`."""
    folder = root / STATE
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise NoRows(f"cannot keep the books in {folder}: {error.strerror}") from error


def read_sizes(root: Path) -> Mapping[str, int]:
    """What contexts take, by model; nothing where that was never learned."""
    try:
        return msgspec.json.decode((root / _SIZES).read_bytes(), type=dict[str, int])
    except (OSError, msgspec.MsgspecError):
        return {}


def write_sizes(root: Path, sizes: Mapping[str, int]) -> None:
    """Raises `OSError`."""
    write_whole(root / _SIZES, msgspec.json.encode(sizes))


class Lock:
    """One broker for a node. The lock is the kernel's: it ends with its holder, however that ends."""

    def __init__(self, root: Path) -> None:
        self._path = root / _LOCK
        self._descriptor: int | None = None

    async def take(self) -> None:
        """Ours now, or `AnotherRuns`."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            await self._locked(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def release(self) -> None:
        """The next one may have it."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    async def _locked(self, descriptor: int) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + LOCK_WITHIN_S
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            if loop.time() >= until:
                raise AnotherRuns(f"another broker of this node holds {self._path}; stop that one, or this one")
            await asyncio.sleep(_AGAIN_S)
