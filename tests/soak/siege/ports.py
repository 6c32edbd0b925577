"""Clients of the daemons' ports: silent connections, and a kubelet's probes."""

from __future__ import annotations

import asyncio
import contextlib
import random
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import msgspec

PROBE_EVERY_S: Final = 1.0
PROBE_WITHIN_S: Final = 1.0
"""As in the manifests' probes, which name no timeout."""
FAILURES: Final = 3
"""Failures in a row after which kubelet would restart the container."""


class Caller(NamedTuple):
    """Files of a client that the daemon knows, and of the authority of the daemon's own certificate."""

    authority: str
    certificate: str
    key: str


class Port(msgspec.Struct, frozen=True):
    """A daemon's probe port; with a client's files if it requires them."""

    name: str
    host: str
    port: int
    pid: int = 0
    """The daemon's process."""
    caller: Caller | None = None


class Answer(msgspec.Struct, frozen=True):
    """The result of a probe."""

    name: str
    took_s: float
    waited_s: float
    """Time in which the daemon was runnable without a processor."""
    is_answered: bool


@dataclass
class Probe:
    port: Port
    answered: int = 0
    failed: int = 0
    in_a_row: int = 0
    restarts: int = 0
    late: int = 0
    """Probes for which a kubelet would not have waited, for any reason."""
    starved: int = 0
    """Probes that timed out while the daemon had no processor: its answer is unknown."""
    worst_own_s: float = 0.0

    def heard(self, answer: Answer) -> None:
        """It fails if the daemon itself took too long, or did not answer."""
        own_s = answer.took_s - answer.waited_s
        is_late = answer.took_s > PROBE_WITHIN_S
        self.late += is_late
        self.worst_own_s = max(self.worst_own_s, own_s)
        if answer.is_answered and own_s <= PROBE_WITHIN_S:
            self.answered, self.in_a_row = self.answered + 1, 0
        elif is_late and own_s <= PROBE_WITHIN_S:
            self.starved += 1
        else:
            self._failed()

    def _failed(self) -> None:
        self.failed, self.in_a_row = self.failed + 1, self.in_a_row + 1
        if self.in_a_row == FAILURES:
            self.restarts, self.in_a_row = self.restarts + 1, 0


@dataclass
class Squatter:
    """Opens connections to one port and stays silent, or begins a request and never ends it."""

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
