"""Supervises the services of a machine without systemd: starts them, restarts them, and stops them in order.

When the supervisor ends for any reason, parent-death signals end the services; containers are not their children and
continue. A service that outlives it (the simulated driver, which containers use like a kernel driver) is adopted by the
next supervisor.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from partage_cli.machine.setup.services import Service
from partage_plugins.errors import PartageError
from partage_plugins.text import printable

Say = Callable[[str], None]
FIRST_S: Final = 0.1
MOST_S: Final = 10.0
SETTLED_S: Final = 30.0
"""After this uptime the restart backoff starts over."""
_END_S: Final = 25.0
"""Longer than the daemons' own stop deadline."""
_LOOK_EVERY_S: Final = 0.2
_LONGEST_LINE: Final = 8 << 10
_LAST_WORDS_S: Final = 0.5
_PR_SET_PDEATHSIG: Final = 1
_libc: Final = ctypes.CDLL(None, use_errno=True)


class Supervisor:
    def __init__(self, root: Path, every: Sequence[Service], *, say: Say) -> None:
        self._root, self._services, self._say = root, every, say
        self._keeping: list[tuple[Service, Keeper, asyncio.Task[None]]] = []

    def start(self) -> None:
        """Start all in order without waiting in between: the services wait for each other themselves."""
        for service in self._services:
            keeper = Keeper(self._root, service, self._say)
            self._keeping.append((service, keeper, asyncio.create_task(keeper.keep(), name=service.name)))

    async def stop(self) -> None:
        """Stop in reverse order; services that outlive the supervisor continue."""
        for _, keeper, task in reversed(self._keeping):
            await keeper.stop()
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


class Keeper:
    def __init__(self, root: Path, service: Service, say: Say) -> None:
        self._root, self._service, self._say = root, service, say
        self._process: asyncio.subprocess.Process | None = None
        self._is_ending = False

    async def keep(self) -> None:
        """Run and restart the service until it is stopped, or cancelled after that."""
        loop = asyncio.get_running_loop()
        wait_s = FIRST_S
        while True:
            began_s = loop.time()
            how = await self._live()
            if self._is_ending:
                return
            wait_s = FIRST_S if loop.time() - began_s > SETTLED_S else wait_s
            self._say(f"{self._service.name} {how}; it starts again in {wait_s:g} s")
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, MOST_S)

    async def stop(self) -> None:
        """Terminate the service, and kill it after the deadline."""
        self._is_ending = True
        process = self._process
        if process is None or process.returncode is not None or self._service.outlives:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(_END_S):
                await process.wait()
        except TimeoutError:
            self._say(f"{self._service.name} does not end, and is killed")
            process.kill()
            await process.wait()

    async def _live(self) -> str:
        """Run the service once; returns how it ended."""
        if self._service.outlives:
            return await self._watched()
        service = self._service
        told, tells = os.pipe2(os.O_CLOEXEC)
        async with self._passing_on(told):
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *service.argv,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=tells,
                    stderr=tells,
                    cwd="/",
                    start_new_session=True,  # Ctrl-C on a terminal is for the supervisor, which stops all in order
                    preexec_fn=_end_with_parent,
                )
            except OSError as error:
                return f"cannot be started: {error.strerror}"
            finally:
                os.close(tells)
            return _ending(await self._process.wait())

    @asynccontextmanager
    async def _passing_on(self, told: int) -> AsyncGenerator[None]:
        """Forward the service's output to the end, without waiting for a grandchild that still holds the pipe open."""
        reader = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        transport, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(told, "rb", buffering=0)
        )
        passing = asyncio.create_task(self._pass_on(reader))
        try:
            yield
            await asyncio.wait([passing], timeout=_LAST_WORDS_S)
        finally:
            passing.cancel()
            transport.close()

    async def _watched(self) -> str:
        """Watch the simulated driver until it ends: an earlier supervisor's, or a new one, which is not our child."""
        from partage_cli.machine.setup import simulation  # noqa: PLC0415  a distribution of its own

        try:
            found = await asyncio.to_thread(simulation.adopted, self._root)
        except (PartageError, OSError) as error:
            return f"cannot be started: {error}"
        with found:
            while found.runs:  # noqa: ASYNC110  no child of ours
                await asyncio.sleep(_LOOK_EVERY_S)
            found.reap()
        return "has ended"

    async def _pass_on(self, stream: asyncio.StreamReader) -> None:
        """Forward output line by line with the service's name in front; longer lines are cut."""
        line = b""
        while data := await stream.read(_LONGEST_LINE):
            *whole, line = (line + data).split(b"\n")
            for each in whole:
                self._tell(each)
            line = line[:_LONGEST_LINE]
        if line:
            self._tell(line)

    def _tell(self, line: bytes) -> None:
        text = line[:_LONGEST_LINE].decode(errors="replace")
        self._say(f"{self._service.name} | {printable(text)}")


def _ending(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"ended with status {status}"


def _end_with_parent() -> None:
    """Called between fork and exec. SIGTERM lets a daemon save its state."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
