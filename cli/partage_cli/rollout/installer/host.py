"""Runs the ``partage node`` of this container's host, in a chroot, with a timeout.

A child process of our own interpreter enters the chroot, so nothing of the host runs before the program itself. The
child is in the host's network and PID namespaces, as the container is. It is never asked to stop early: its work is
journalled, so one that exceeds the timeout is killed, and a later run continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from partage_cli.installation.places import CURRENT, JOURNAL, TREES
from partage_cli.installation.programs import ENVIRONMENT
from partage_cli.rollout.order import Command, HostState

PROGRAM: Final = "bin/partage"
STATUS_WITHIN_S: Final = 60.0
_MOST_BYTES: Final = 64 << 10
_PIPES_END_WITHIN_S: Final = 5.0
_ENTER: Final = "import os, sys; os.chroot(sys.argv[1]); os.chdir('/'); os.execv(sys.argv[2], sys.argv[2:])"


class Ran(msgspec.Struct, frozen=True):
    """The result of a program."""

    code: int | None
    """None if it was killed after the timeout."""
    out: bytes = b""
    err: bytes = b""

    @property
    def last_words(self) -> str:
        """The last line of stderr, else of stdout."""
        lines = (self.err.strip() or self.out.strip()).decode(errors="replace").splitlines()
        return lines[-1].strip() if lines else ""


Run = Callable[[Sequence[str], float], Awaitable[Ran]]
"""Runs a program of the host, by its path there, with a timeout in seconds."""


class HostProgram:
    def __init__(self, root: Path, version: str, *, within_s: float, run: Run) -> None:
        self.root = root
        self._version, self._within_s, self._run = version, within_s, run

    @property
    def has_program(self) -> bool:
        """Whether the host has a version whose commands can be run."""
        return self._program() is not None

    async def state(self) -> HostState:
        """The host's own report; raises `OSError`."""
        if not (self.root / JOURNAL).exists():  # while it exists something is installed
            return HostState(why="nothing is installed")
        program = self._program()
        if program is None:
            why = f"/{CURRENT} is gone, and the journal says that it was installed"
            return HostState(version="", why=why, altered=(f"/{TREES}/{self._version}",))
        ran = await self._run([program, "node", "status", "-o", "json"], STATUS_WITHIN_S)
        try:
            state = msgspec.json.decode(ran.out, type=HostState)
        except (msgspec.DecodeError, RecursionError):
            return HostState(version="", why=f"`partage node status` on the host: {_ended(ran, STATUS_WITHIN_S)}")
        return msgspec.structs.replace(state, version=state.version or "", why=state.why or "")

    async def do(self, command: Command) -> str | None:
        """Runs one command to its end; returns None on success, else the reason. Raises `OSError`."""
        program = self._program()
        if program is None:
            return f"there is no program for it on the host: /{TREES} has no version"
        ran = await self._run([program, "node", command], self._within_s)
        return None if ran.code == 0 else f"`partage node {command}`: {_ended(ran, self._within_s)}"

    def _program(self) -> str | None:
        """This version's program if it exists: a newer one knows how an older one installed."""
        for tree in (f"{TREES}/{self._version}", CURRENT):
            if (self.root / tree / PROGRAM).exists():
                return f"/{tree}/{PROGRAM}"
        return None


def inside(root: Path, node: str) -> Run:
    """Runs programs in a chroot of `root`, with the node's name and nothing else of our environment."""
    environment = {**ENVIRONMENT, "PARTAGE_NODE_NAME": node}

    async def run(argv: Sequence[str], within_s: float) -> Ran:
        return await _ran([sys.executable, "-I", "-S", "-c", _ENTER, str(root), *argv], environment, within_s)

    return run


async def _ran(argv: Sequence[str], environment: dict[str, str], within_s: float) -> Ran:
    pipe, nothing = asyncio.subprocess.PIPE, asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(
        *argv, stdin=nothing, stdout=pipe, stderr=pipe, env=environment, start_new_session=True
    )
    out, err = bytearray(), bytearray()
    readers = asyncio.gather(_last(process.stdout, out), _last(process.stderr, err))
    try:
        async with asyncio.timeout(within_s):
            await process.wait()
        with contextlib.suppress(TimeoutError):  # its children may keep them open
            async with asyncio.timeout(_PIPES_END_WITHIN_S):
                await readers
    except TimeoutError:
        return Ran(None, bytes(out), bytes(err))
    finally:
        readers.cancel()
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        await asyncio.gather(readers, return_exceptions=True)  # asyncio logs an end that nobody waited for
    return Ran(process.returncode, bytes(out), bytes(err))


async def _last(stream: asyncio.StreamReader | None, kept: bytearray) -> None:
    """Reads the whole stream and keeps its end."""
    while stream is not None and (piece := await stream.read(_MOST_BYTES)):
        kept += piece
        del kept[:-_MOST_BYTES]


def _ended(ran: Ran, within_s: float) -> str:
    if ran.code is None:
        how = f"killed after {within_s:g} s"
    elif ran.code < 0:
        how = f"killed by signal {-ran.code}"
    else:
        how = f"exit code {ran.code}"
    return f"{ran.last_words} ({how})" if ran.last_words else how
