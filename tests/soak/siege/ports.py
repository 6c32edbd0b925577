"""Whoever reaches the ports of daemons: connections that say nothing, and the probes of a kubelet beside them."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import time
from dataclasses import dataclass, field
from typing import Final

PROBE_EVERY_S: Final = 1.0
PROBE_WITHIN_S: Final = 1.0
"""As in the manifests' probes, which name no timeout."""
FAILURES: Final = 3
"""In a row: then kubelet would restart the container."""


@dataclass(frozen=True)
class Port:
    """Where a daemon is asked; with papers of a caller where it asks for them."""

    name: str
    host: str
    port: int
    papers: ssl.SSLContext | None = None


@dataclass
class Probe:
    port: Port
    answered: int = 0
    failed: int = 0
    in_a_row: int = 0
    restarts: int = 0
    worst_s: float = 0.0

    async def run(self) -> None:
        while True:
            began = time.monotonic()
            self._count(time.monotonic() - began if await _is_alive(self.port) else None)
            await asyncio.sleep(max(0.0, began + PROBE_EVERY_S - time.monotonic()))

    def _count(self, took_s: float | None) -> None:
        if took_s is not None:
            self.answered, self.in_a_row = self.answered + 1, 0
            self.worst_s = max(self.worst_s, took_s)
            return
        self.failed, self.in_a_row = self.failed + 1, self.in_a_row + 1
        if self.in_a_row == FAILURES:
            self.restarts, self.in_a_row = self.restarts + 1, 0


@dataclass
class Squatter:
    """Opens connections to one port and says nothing, or begins a request and never ends it."""

    port: Port
    chance: random.Random
    rate: float
    at_once: int
    opened: int = 0
    _held: list[asyncio.StreamWriter] = field(default_factory=list[asyncio.StreamWriter])

    async def run(self) -> None:
        try:
            while True:
                await self._open()
                await asyncio.sleep(self.chance.expovariate(self.rate))
                while len(self._held) > self.at_once:
                    self._held.pop(self.chance.randrange(len(self._held))).transport.abort()
        finally:
            for writer in self._held:
                writer.transport.abort()

    async def _open(self) -> None:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection(self.port.host, self.port.port)
            self._held.append(writer)
            self.opened += 1
            writer.write(self.chance.choice((b"", b"\x16\x03\x01", b"GET /metrics HTTP/1.1\r\nx: ")))


async def _is_alive(port: Port) -> bool:
    """Whether it is answered, and, where anybody may ask, whether it says that it is well."""
    try:
        async with asyncio.timeout(PROBE_WITHIN_S):
            reader, writer = await asyncio.open_connection(port.host, port.port, ssl=port.papers)
            try:
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: probe\r\nConnection: close\r\n\r\n")
                line = await reader.readline()
                return line.startswith(b"HTTP/1.1 ") if port.papers else b" 200 " in line
            finally:
                writer.transport.abort()
    except (OSError, TimeoutError):
        return False
