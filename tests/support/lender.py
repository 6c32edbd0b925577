"""The broker's side of the library protocol. It enforces the limits, and misbehaves as a test requires.

    with Lender(folder / "broker", {card_uuid(NODE, 0): 256 << 20}) as broker:
        ...                                     # programs whose library lies in folder/lib find it there
        broker.amounts(pid)                     # asks a process how much it uses
        broker.recall(pid)
        broker.stop(); broker.start()           # goes away, and comes back knowing its tokens
        broker.answering = another              # in place of `honest`

    with Granter(folder / "broker", {card_uuid(NODE, 0): 256 << 20}) as broker:
        epoch = broker.timeslice(0, seconds=0.02)   # writes the line, and gives the hint
        broker.close(0); broker.free(0); broker.sole(0)
        broker.heard_of(What.WANT, epoch)       # packets so far
        broker.generous = True                  # each that wants the card gets it alone

It records every packet, tracks nothing but `lent`, and trusts its clients. It has one thread and is not fast.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self
from uuid import UUID

from partage_isolation.ledger.account import Amounts
from partage_isolation.library.pages import built_page, line_writer
from partage_isolation.store.page import Page
from partage_isolation.timeslices.line import LineState, after, pack
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, Loss, Packet, Result, TimeSlice, What
from rig.client.wait import found

MIB: Final = 1 << 20
CREDIT_MOST: Final = 32 * MIB
CREDIT_PART: Final = 16
_ONE_WAY: Final = (What.RETURN, What.AMOUNTS)
_CREDENTIALS: Final = struct.Struct("3i")


@dataclass
class Row:
    pid: int
    token: bytes
    lent: dict[int, int] = field(default_factory=dict[int, int])
    said: dict[int, Amounts] = field(default_factory=dict[int, Amounts])
    calls: socket.socket | None = None
    signals: socket.socket | None = None


Answering = Callable[["Lender", Row, Packet], bytes | None]
"""The answer to a packet; None sends nothing."""


def honest(broker: Lender, row: Row, packet: Packet) -> bytes | None:
    return broker.answer(row, packet)


class Lender:
    """Serves in a `with` block. `limits`: bytes by card UUID."""

    def __init__(self, path: Path, limits: Mapping[str, int]) -> None:
        self.path = path
        self.uuids = [UUID(one.removeprefix("GPU-").removeprefix("MIG-")).bytes for one in limits]
        self.limits = list(limits.values())
        self.answering: Answering = honest
        self.gives_credit = self.is_sure = True
        self.rows: dict[bytes, Row] = {}
        self.heard: list[tuple[int, Packet]] = []
        self.pieces: dict[tuple[int, int], set[int]] = {}
        """Names of shared memory, by PID and number."""
        self.sizes: dict[int, int] = {}
        self.opened: set[tuple[int, int]] = set()
        """PIDs and names."""
        self._reports: dict[tuple[int, int], Amounts] = {}
        self._number = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    # ---- lifecycle ---------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.path.unlink(missing_ok=True)
        self._listener.bind(str(self.path))
        self._listener.listen(64)
        self._wake, self._woken = socket.socketpair()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._listener, selectors.EVENT_READ)
        self._selector.register(self._woken, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._serve, name="lender")
        self._thread.start()

    def stop(self) -> None:
        if self._thread is None:
            return
        self._wake.send(b"x")
        self._thread.join()
        self._thread = None
        self.path.unlink(missing_ok=True)
        for key in list(self._selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]  # all of them are sockets
        self._wake.close()
        self._selector.close()
        for row in self.rows.values():
            row.calls = row.signals = None

    def forget(self) -> None:
        self.rows.clear()

    # ---- for tests ---------------------------------------------------------------------------------------------------

    def row(self, pid: int) -> Row:
        return [row for row in self.rows.values() if row.pid == pid][-1]

    def amounts(self, pid: int, card: int = 0) -> Amounts:
        self._number += 1
        number = self._number
        row = self.row(pid)
        assert row.signals is not None, "the process listens to no hints"
        row.signals.send(wire.hint(What.REPORT, card, number))
        self.wait(lambda: (pid, number) in self._reports, f"process {pid} reports")
        return self._reports.pop((pid, number))

    def recall(self, pid: int, card: int = 0) -> None:
        """Request unused credit back, without waiting for it."""
        signals = self.row(pid).signals
        assert signals is not None, "the process listens to no hints"
        signals.send(wire.hint(What.RECALL, card, 0))

    def said(self, what: What) -> list[Packet]:
        return [packet for _, packet in self.heard if packet.what == what]

    def lent(self, card: int = 0) -> int:
        return sum(row.lent.get(card, 0) for row in self.rows.values())

    def wait(self, holds: Callable[[], bool], what: str) -> None:
        """Wait for a condition that a packet may make true."""

        def holds_soon() -> bool:
            return holds() or (self._changed.wait(0.05) and holds())

        with self._changed:
            found(what, holds_soon, every_s=0)

    # ---- answers -----------------------------------------------------------------------------------------------------

    def answer(self, row: Row, packet: Packet) -> bytes | None:
        if packet.what in _ONE_WAY:
            self._told(row, packet)
            return None
        answers = {What.CARD: self._card, What.LEND: self._lend, What.VIEW: self._view}
        answers |= {What.CONTEXT: self._context, What.PROCESSES_OF: self._processes}
        answers |= {What.EXPORT: self._export, What.LEAVE: self._leave, What.OPEN: self._open, What.CLOSE: self._close}
        known = answers.get(What(packet.what))
        return known(row, packet) if known else wire.answer(packet, Result.WRONG)

    def _card(self, _row: Row, packet: Packet) -> bytes:
        uuid, limit = self.uuids[packet.card], self.limits[packet.card]
        return wire.answer(packet, Result.OK, wire.card_body(uuid, limit, share=100, limit=1000, is_mig=False))

    def _context(self, _row: Row, packet: Packet) -> bytes:
        return wire.answer(packet, Result.OK)

    def _export(self, row: Row, packet: Packet) -> bytes:
        said = packet.shared
        self.pieces.setdefault((row.pid, said.number), set()).add(said.name)
        self.sizes[said.name] = said.size
        return wire.answer(packet, Result.OK)

    def _leave(self, row: Row, packet: Packet) -> bytes:
        """The memory stays lent if any process has it open."""
        names = self.pieces.get((row.pid, packet.shared.number), set())
        if any(name in names for _, name in self.opened):
            row.lent[packet.card] -= packet.shared.freed
        return wire.answer(packet, Result.OK, wire.amounts_body(Amounts(0, row.lent.get(packet.card, 0))))

    def _open(self, row: Row, packet: Packet) -> bytes:
        said = packet.shared
        self.opened.add((row.pid, said.name))
        size = max(said.size, self.sizes.get(said.name, 0))
        return wire.answer(packet, Result.OK, wire.shared_body(said._replace(size=size)))

    def _close(self, row: Row, packet: Packet) -> bytes:
        self.opened.discard((row.pid, packet.shared.name))
        return wire.answer(packet, Result.OK)

    def _view(self, _row: Row, packet: Packet) -> bytes:
        return wire.answer(packet, Result.OK, wire.view_body(self.limits[packet.card], self.lent(packet.card), 0))

    def _processes(self, _row: Row, packet: Packet) -> bytes:
        every = [(one.pid, one.lent.get(packet.card, 0)) for one in self.rows.values()]
        some = every[packet.first_process :][: wire.PROCESSES_AT_ONCE]
        return wire.answer(packet, Result.OK, wire.processes_body(some), flags=len(every))

    def _told(self, row: Row, packet: Packet) -> None:
        row.said[packet.card] = packet.amounts
        if packet.what == What.RETURN:
            row.lent[packet.card] = min(row.lent.get(packet.card, 0), packet.amounts.lent)
        else:
            self._reports[row.pid, packet.number] = packet.amounts

    def _lend(self, row: Row, packet: Packet) -> bytes:
        card, wanted = packet.card, packet.amounts.lent
        before = row.lent.get(card, 0)
        left = self.limits[card] - self.lent(card) - (wanted - before)
        if wanted <= before:
            granted, result = before, Result.OK
        elif left < 0:
            granted, result = before, Result.NO
        else:
            credit = min(CREDIT_MOST, left // CREDIT_PART) if self.gives_credit else 0
            granted, result = wanted + credit, Result.OK
        row.lent[card] = granted
        body, flags = (
            wire.amounts_body(Amounts(used=packet.amounts.used, lent=granted)),
            Flag.SURE * (self.is_sure and result == Result.NO),
        )
        return wire.answer(packet, result, body, flags=flags)

    # ---- packets -----------------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        while True:
            for key, _ in self._selector.select():
                peer: socket.socket = key.fileobj  # type: ignore[assignment]  # all of them are sockets
                if peer is self._woken:
                    return
                if peer is self._listener:
                    self._selector.register(peer.accept()[0], selectors.EVENT_READ)
                else:
                    self._hear(peer, key.data)

    def _hear(self, peer: socket.socket, row: Row | None) -> None:
        data = b""
        with contextlib.suppress(OSError):
            data = peer.recv(wire.BYTES + 1)
        packet = wire.read(data)
        if packet is None:
            self._selector.unregister(peer)
            peer.close()
            return
        with self._changed:
            self.heard.append((row.pid if row else 0, packet))
            answer = self._hello(peer, packet) if row is None else self.answering(self, row, packet)
            if answer is not None:
                with contextlib.suppress(OSError):
                    peer.send(answer)
            self._changed.notify_all()

    def _hello(self, peer: socket.socket, packet: Packet) -> bytes | None:
        if packet.token == wire.NO_TOKEN:
            pid = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))[0]
            row = Row(pid, os.urandom(wire.TOKEN_BYTES))
            self.rows[row.token] = row
        elif packet.token not in self.rows:
            return wire.answer(packet, Result.UNKNOWN)
        else:
            row = self.rows[packet.token]
        if packet.flags & Flag.SIGNALS:
            row.signals = peer
        else:
            row.calls = peer
        self._selector.modify(peer, selectors.EVENT_READ, row)
        return wire.answer(packet, Result.OK, wire.hello_body(row.token, len(self.limits)))


class Granter(Lender):
    """Grants time slices as a test requires, on a page of lines. Each written line applies to all processes."""

    def __init__(self, path: Path, limits: Mapping[str, int]) -> None:
        super().__init__(path, limits)
        self.metered = True
        """Whether JOIN is answered with OK."""
        self.generous = False
        self.gives_hints = True
        self.idle_us = 500
        self.loss, self.loss_after_s = Loss.FREE, 1.0
        self.joined: list[tuple[int, int]] = []
        """PIDs and cards, in order."""
        self.timeslices: list[tuple[int, Packet, float]] = []
        """Packets about time slices, with PID and time."""
        self._page = _page()
        self._epochs = [0] * len(limits)

    # ---- lines -------------------------------------------------------------------------------------------------------

    def line(self, card: int, state: LineState, *, until: float = 0.0) -> int:
        """Write a line and send the hint; returns the epoch. `until` is a time of time.monotonic()."""
        epoch = self._epochs[card] = after(self._epochs[card])
        self._page.write(card, pack(state, epoch, int(until * 1e9)), wake=True)
        for row in list(self.rows.values()) if self.gives_hints else []:
            with contextlib.suppress(OSError):
                if row.signals is not None:
                    row.signals.send(wire.line_hint(card, epoch), socket.MSG_DONTWAIT)
        return epoch

    def epoch(self, card: int = 0) -> int:
        """Epoch of the current line."""
        return self._epochs[card]

    def close(self, card: int = 0) -> int:
        return self.line(card, LineState.CLOSED)

    def timeslice(self, card: int = 0, *, seconds: float) -> int:
        return self.line(card, LineState.TIMESLICE, until=time.monotonic() + seconds)

    def sole(self, card: int = 0) -> int:
        return self.line(card, LineState.SOLE)

    def free(self, card: int = 0) -> int:
        return self.line(card, LineState.FREE)

    def new_page(self) -> None:
        """Start a new page like another broker's: all lines closed, with other epochs."""
        self._page.close()
        self._page = _page()
        self._epochs = [1000] * len(self._epochs)
        for card in range(len(self._epochs)):
            self.close(card)

    # ---- for tests ---------------------------------------------------------------------------------------------------

    def heard_of(self, what: What, epoch: int | None = None, *, card: int = 0, pid: int | None = None) -> list[Packet]:
        """Packets about a card's time slices so far."""
        return [
            packet
            for by, packet, _ in list(self.timeslices)
            if packet.what == what
            and packet.card == card
            and (epoch is None or packet.timeslice.epoch == epoch)
            and (pid is None or by == pid)
        ]

    def wait_for(self, what: What, epoch: int, *, card: int = 0, pid: int | None = None, times: int = 1) -> Packet:
        """Wait for such a packet, or for `times` of them."""
        self.wait(
            lambda: len(self.heard_of(what, epoch, card=card, pid=pid)) >= times, f"{what.name} of {epoch} is said"
        )
        return self.heard_of(what, epoch, card=card, pid=pid)[-1]

    # ---- packets -----------------------------------------------------------------------------------------------------

    def answer(self, row: Row, packet: Packet) -> bytes | None:
        if packet.what == What.JOIN:
            return self._join(row, packet)
        if packet.what in (What.WANT, What.DRAINED, What.IDLE):
            self.timeslices.append((row.pid, packet, time.monotonic()))
            if packet.what == What.WANT and self.generous:
                self.sole(packet.card)
            return None
        return super().answer(row, packet)

    def _join(self, row: Row, packet: Packet) -> bytes:
        self.joined.append((row.pid, packet.card))
        if not self.metered:
            return wire.answer(packet, Result.NO)
        timeslice = TimeSlice(0, self._epochs[packet.card], 0, self.idle_us, self.loss, int(self.loss_after_s * 1e9))
        return wire.answer(packet, Result.OK, wire.lease_body(timeslice))

    def _hello(self, peer: socket.socket, packet: Packet) -> bytes | None:
        answer = super()._hello(peer, packet)
        if answer is not None:
            with contextlib.suppress(OSError):
                socket.send_fds(peer, [answer], [self._page.descriptor])
        return None

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._page.close()


def _page() -> Page:
    return Page(0, line_writer(built_page().parent))
