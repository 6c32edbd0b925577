"""A broker that grants leases as a test wants it to: a `Lender` with a page of lines.

    with granter(folder / "broker", {card_uuid(NODE, 0): 256 << 20}) as broker:
        epoch = broker.lease(0, seconds=0.02)   # writes the line, and gives the hint
        broker.close(0); broker.free(0); broker.sole(0)
        broker.heard_of(What.WANT, epoch)       # packets so far
        broker.generous = True                  # each that wants the card gets it alone

It keeps no order between processes: whatever is written holds for all.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import mmap
import os
import socket
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import Final

from partage_isolation.leases.line import LINE_BYTES
from partage_isolation.library.pages import built_page, line_writer
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Lease, Loss, Packet, Result, What
from support.lender import Lender, Row

EPOCHS: Final = 1 << 17
MOST_CARDS: Final = 64
IDLE_US: Final = 500
_ABOUT_LEASES: Final = (What.WANT, What.DRAINED, What.IDLE)
_ADD_SEALS: Final = 1033
_SEALS: Final = 0x1 | 0x2 | 0x4 | 0x10


class Line(IntEnum):
    CLOSED = 0
    LEASE = 1
    SOLE = 2
    FREE = 3


class _Page:
    def __init__(self) -> None:
        self.descriptor = os.memfd_create("page", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, MOST_CARDS * LINE_BYTES)
        self._map = mmap.mmap(self.descriptor, MOST_CARDS * LINE_BYTES)
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._map))
        fcntl.fcntl(self.descriptor, _ADD_SEALS, _SEALS)
        self._write = line_writer(built_page().parent)

    def write(self, card: int, word: int) -> None:
        self._write(self._address + card * LINE_BYTES, word, True)

    def close(self) -> None:
        self._map.close()
        os.close(self.descriptor)


class Granter(Lender):
    def __init__(self, path: Path, limits: Mapping[str, int]) -> None:
        super().__init__(path, limits)
        self.metered = True
        """Whether JOIN is answered with OK."""
        self.generous = False
        self.gives_hints = True
        self.idle_us = IDLE_US
        self.loss, self.loss_after_s = Loss.FREE, 1.0
        self.joined: list[tuple[int, int]] = []
        """Pids and cards, in order."""
        self.leases: list[tuple[int, Packet, float]] = []
        """What was said of leases, by which process, and when."""
        self._page = _Page()
        self._epochs = [0] * len(limits)

    # ---- lines -------------------------------------------------------------------------------------------------------

    def line(self, card: int, state: Line, *, until: float = 0.0) -> int:
        """Writes a line, and says so; its epoch. `until`: of time.monotonic()."""
        epoch = self._epochs[card] = (self._epochs[card] + 1) % EPOCHS
        deadline = int(until * 1e9) >> 14
        self._page.write(card, state | epoch << 3 | deadline << 20)
        for row in list(self.rows.values()) if self.gives_hints else []:
            with contextlib.suppress(OSError):
                if row.signals is not None:
                    row.signals.send(wire.line_hint(card, epoch), socket.MSG_DONTWAIT)
        return epoch

    def close(self, card: int = 0) -> int:
        return self.line(card, Line.CLOSED)

    def lease(self, card: int = 0, *, seconds: float) -> int:
        return self.line(card, Line.LEASE, until=time.monotonic() + seconds)

    def sole(self, card: int = 0) -> int:
        return self.line(card, Line.SOLE)

    def free(self, card: int = 0) -> int:
        return self.line(card, Line.FREE)

    def new_page(self) -> None:
        """As another broker has: all closed, in other epochs."""
        self._page.close()
        self._page = _Page()
        self._epochs = [1000] * len(self._epochs)
        for card in range(len(self._epochs)):
            self.close(card)

    # ---- what tests ask ----------------------------------------------------------------------------------------------

    def heard_of(self, what: What, epoch: int | None = None, *, card: int = 0, pid: int | None = None) -> list[Packet]:
        """What was said of a card's leases so far."""
        return [
            packet
            for by, packet, _ in list(self.leases)
            if packet.what == what
            and packet.card == card
            and (epoch is None or packet.lease.epoch == epoch)
            and (pid is None or by == pid)
        ]

    def wait_for(self, what: What, epoch: int, *, card: int = 0, pid: int | None = None, times: int = 1) -> Packet:
        """Until it is said, or so many times."""
        self.wait(
            lambda: len(self.heard_of(what, epoch, card=card, pid=pid)) >= times, f"{what.name} of {epoch} is said"
        )
        return self.heard_of(what, epoch, card=card, pid=pid)[-1]

    # ---- packets -----------------------------------------------------------------------------------------------------

    def answer(self, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.JOIN:
            return self._join(row, packet)
        if packet.what in _ABOUT_LEASES:
            self.leases.append((row.pid, packet, time.monotonic()))
            if packet.what == What.WANT and self.generous:
                self.sole(packet.card)
            return None
        return super().answer(row, packet)

    def _join(self, row: Row, packet: Packet) -> bytes:
        self.joined.append((row.pid, packet.card))
        if not self.metered:
            return wire.answer(packet, Result.NO)
        lease = Lease(0, self._epochs[packet.card], 0, self.idle_us, self.loss, int(self.loss_after_s * 1e9))
        return wire.answer(packet, Result.OK, wire.lease_body(lease))

    def _hello(self, peer: socket.socket, packet: Packet) -> bytes | None:
        answer = super()._hello(peer, packet)
        if answer is not None:
            with contextlib.suppress(OSError):
                socket.send_fds(peer, [answer], [self._page.descriptor])
        return None

    def forget_page(self) -> None:
        self._page.close()


@contextmanager
def granter(path: Path, limits: Mapping[str, int]) -> Generator[Granter]:
    """One that serves; gone afterwards. `limits`: bytes by the cards' UUIDs."""
    broker = Granter(path, limits)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()
        broker.forget_page()
