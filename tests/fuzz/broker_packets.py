"""For any packets of processes, loans never exceed a limit, and the accounts survive a restart intact.

Each 64 bytes are a packet of one of four processes; between packets samples are taken, and processes die and return.
"""

from __future__ import annotations

from partage_isolation.ledger import samples as rules
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.budget import Process
from partage_isolation.ledger.ledger import Ledger
from partage_isolation.ledger.quota_accounting import Lent, Patience
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, What
from unit.isolation.ledger.keeping import CARD, KEY, MIB, Kept, ledger_of, restarted

LIMIT = 1024 * MIB
MOST = 256 * wire.BYTES
"""Later packets add nothing new, and the accounts are read again after each packet."""


def _packet(what: int, *, number: int = 0, flags: int = 0, **amounts: int) -> bytes:
    body = wire.amounts_body(Amounts(amounts.get("used", 0), amounts.get("lent", 0), amounts.get("changes", 0)))
    return wire.question(what, card=0, number=number, flags=flags, body=body)


SEEDS = (
    b"",
    b"".join(_packet(What.LEND, number=one, lent=200 * MIB) for one in range(8)),
    _packet(What.CONTEXT)
    + _packet(What.AMOUNTS, flags=Flag.CONTEXT_MADE)
    + _packet(What.LEND, lent=900 * MIB)
    + _packet(What.RETURN, lent=1)
    + _packet(What.LEND, lent=900 * MIB),
    b"".join(_packet(what, number=what, used=MIB, lent=2 * MIB, flags=4) for what in range(40)),
)
DICTIONARY = (*(what.to_bytes(2, "little") for what in What), MIB.to_bytes(8, "little"), b"\xff" * 8)


class _World:
    def __init__(self) -> None:
        self.kept = Kept()
        self.ledger = ledger_of(LIMIT, self.kept, context=64 * MIB)
        self.born = 0

    def process(self, number: int) -> Process:
        for process in self.ledger.containers[KEY].processes.values():
            if process.pid == 100 + number and not process.died_ns:
                return process
        self.born += 1
        found = self.ledger.lives.begin(KEY, (100 + number, self.born), self.born.to_bytes(16, "big"))
        if found is None:
            raise AssertionError("there is room for another process")
        return found

    @property
    def charged(self) -> int:
        return self.ledger.containers[KEY].charged(0)


def target(data: bytes) -> str:
    world, said = _World(), "nothing"
    for start in range(0, min(len(data), MOST), wire.BYTES):
        packet = wire.read(data[start : start + wire.BYTES])
        if packet is None:
            return "cut off"
        said = _said(world, packet)
        _check(world)
    return said


def _said(world: _World, packet: wire.Packet) -> str:
    ledger, process = world.ledger, world.process(packet.number % 4)
    before = world.charged
    match packet.what:
        case What.LEND | What.CONTEXT:
            ask = ledger.accounting.lend if packet.what == What.LEND else ledger.accounting.context
            verdict = ask(process, 0, packet.amounts, patience=Patience(packet.flags % 3))
            if isinstance(verdict, Lent) and world.charged > max(before, LIMIT):
                raise AssertionError(f"{world.charged} bytes are charged; the limit is {LIMIT}")
            return type(verdict).__name__
        case What.RETURN:
            ledger.accounting.returned(process, 0, packet.amounts)
        case What.AMOUNTS:
            ledger.accounting.told(process, 0, packet.amounts)
            if packet.flags & (Flag.CONTEXT_MADE | Flag.CONTEXT_FAILED):
                ledger.accounting.context_ended(process, 0, made=not packet.flags & Flag.CONTEXT_FAILED)
        case What.RECALL:
            ledger.lives.died(process, 10)
        case What.REPORT:
            shown = {100 + number: packet.amounts.used % LIMIT for number in range(packet.flags % 4)}
            rules.apply(ledger, rules.begin(ledger, CARD, 20), rules.Shown(shown, {}))
        case _:
            return "nothing"
    if packet.what in (What.RETURN, What.AMOUNTS) and world.charged != before:
        raise AssertionError("what a process says alone changes what is charged")
    return What(packet.what).name


def _check(world: _World) -> None:
    amounts = [
        amount
        for process in world.ledger.containers[KEY].processes.values()
        for account in process.accounts.values()
        for amount in (account.lent, account.unproved, account.overhead, account.reserved)
    ]
    if min(amounts, default=0) < 0:
        raise AssertionError("an amount is negative")
    again: Ledger = restarted(world.kept, LIMIT)
    if again.containers[KEY].charged(0) != world.charged:
        raise AssertionError("a restart changes what is charged")
