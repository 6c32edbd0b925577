"""The client's side of the broker protocol in Python, for behaviour of the library and of hostile processes."""

from __future__ import annotations

import contextlib
import os
import socket
from pathlib import Path
from types import TracebackType
from typing import Self

from partage_isolation.ledger.account import Amounts
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, Packet, Result, What
from support.sockets import connected


class Client:
    """One process with its two sockets. Amounts are for card 0 by default."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.token = wire.NO_TOKEN
        self.cards = 0
        self.page: int | None = None
        self.calls = connected(path)
        self.signals: socket.socket | None = None
        self.number = 0
        self.used: dict[int, int] = {}
        self.lent: dict[int, int] = {}
        self.changes = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: type[BaseException] | None, _e: BaseException | None, _: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        for peer in (self.calls, self.signals):
            if peer is not None:
                peer.close()
        if self.page is not None:
            os.close(self.page)
            self.page = None

    # ---- Packets -----------------------------------------------------------------------------------------------------

    def say(self, what: int, *, card: int = 0, body: bytes = b"", flags: int = 0) -> None:
        self.number += 1
        self.calls.send(wire.question(what, card=card, number=self.number, flags=flags, body=body))

    def answer(self) -> Packet:
        """The next packet; asserts that it answers the last question."""
        packet = wire.read(self.calls.recv(wire.BYTES + 1))
        assert packet is not None, "the broker closed the connection"
        assert packet.number == self.number, packet
        return packet

    def ask(self, what: int, *, card: int = 0, body: bytes = b"", flags: int = 0) -> Packet:
        self.say(what, card=card, body=body, flags=flags)
        return self.answer()

    # ---- Behaviour of the library ------------------------------------------------------------------------------------

    def hello(self, token: bytes = wire.NO_TOKEN, *, signals: bool = True) -> Result:
        self.number += 1
        self.calls.send(wire.question(What.HELLO, number=self.number, body=wire.hello_body(token)))
        data, descriptors, _, _ = socket.recv_fds(self.calls, wire.BYTES + 1, 1)
        packet = wire.read(data)
        assert packet is not None
        if self.page is not None:
            os.close(self.page)
        self.page = descriptors[0] if descriptors else None
        if packet.result == Result.OK:
            self.token, self.cards = wire.read_hello(packet)
            if signals:
                self.attach()
        return Result(packet.result)

    def attach(self, token: bytes | None = None) -> Result:
        before, self.signals = self.signals, None
        if before is not None:
            before.close()
        signals = connected(self.path)
        body = wire.hello_body(self.token if token is None else token)
        signals.send(wire.question(What.HELLO, flags=Flag.SIGNALS, body=body))
        packet = wire.read(signals.recv(wire.BYTES + 1))
        assert packet is not None
        self.signals = signals
        return Result(packet.result)

    def resume(self) -> Result:
        self.calls.close()
        self.calls = connected(self.path)
        return self.hello(self.token)

    def lend(self, lent: int, *, card: int = 0) -> bool:
        packet = self.ask(What.LEND, card=card, body=self.body(lent, card=card))
        self.lent[card] = packet.amounts.lent
        return packet.result == Result.OK

    def take(self, amount: int, *, card: int = 0) -> bool:
        """Take memory as for an allocation, by credit if there is some."""
        wanted = self.used.get(card, 0) + amount
        if wanted > self.lent.get(card, 0) and not self.lend(wanted, card=card):
            return False
        self.used[card] = wanted
        self.changes += 1
        return True

    def give(self, amount: int, *, card: int = 0) -> None:
        self.used[card] -= amount
        self.changes += 1
        self.returned(self.used[card], card=card)

    def returned(self, lent: int, *, card: int = 0) -> None:
        self.say(What.RETURN, card=card, body=self.body(lent, card=card))
        self.lent[card] = lent

    def context(self, *, card: int = 0) -> bool:
        return self.ask(What.CONTEXT, card=card, body=self.body(card=card)).result == Result.OK

    def amounts(self, *, card: int = 0, flags: int = 0) -> None:
        self.say(What.AMOUNTS, card=card, body=self.body(card=card), flags=flags)

    def view(self, *, card: int = 0) -> wire.View:
        return wire.read_view(self.ask(What.VIEW, card=card))

    def processes(self, *, card: int = 0) -> list[tuple[int, int]]:
        found: list[tuple[int, int]] = []
        while True:
            packet = self.ask(What.PROCESSES_OF, card=card, body=len(found).to_bytes(8, "little"))
            found += wire.read_processes(packet)
            if len(found) >= packet.flags:
                return found

    def body(self, lent: int | None = None, *, card: int = 0) -> bytes:
        used, have = self.used.get(card, 0), self.lent.get(card, 0)
        return wire.amounts_body(Amounts(used, have if lent is None else lent, self.changes))

    def obey(self) -> What | None:
        """Answer one hint and return its kind, or None if there is none.

        The answer goes to `calls`, as in the library, so that memory given back arrives before the next request.
        """
        signals = self.signals
        assert signals
        with contextlib.suppress(BlockingIOError):
            packet = wire.read(signals.recv(wire.BYTES + 1, socket.MSG_DONTWAIT))
            assert packet is not None, "the broker closed the signals"
            what = What.RETURN if packet.what == What.RECALL else What.AMOUNTS
            if what is What.RETURN:
                self.lent[packet.card] = self.used.get(packet.card, 0)
            body = self.body(card=packet.card)
            self.calls.send(wire.question(what, card=packet.card, number=packet.number, body=body))
            return What(packet.what)
        return None
