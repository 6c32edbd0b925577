"""A process's half of the time slice protocol, in Python: as the library does it, and as a hostile process might."""

from __future__ import annotations

import ctypes
import mmap
import os
import select
import time
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple, Self

from partage_isolation.timeslices.line import LINE_BYTES, LineState, unpack
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Packet, Result, TimeSlice, What
from rig.patience import Wait, in_vain
from support.broker_client import Client

_libc: Final = ctypes.CDLL(None, use_errno=True)
_FUTEX: Final = 202 if os.uname().machine == "x86_64" else 98
_FUTEX_WAIT: Final = 0


class Line(NamedTuple):
    """An entry of the page."""

    state: LineState
    epoch: int
    deadline_ns: int

    @property
    def is_open(self) -> bool:
        """Whether work may be launched now."""
        if self.state is LineState.TIMESLICE:
            return time.monotonic_ns() < self.deadline_ns
        return self.state is not LineState.CLOSED


class Member:
    """A process that sends HELLO, and JOIN when told to."""

    def __init__(self, path: Path) -> None:
        self.client = Client(path)
        assert self.client.hello() == Result.OK
        self._map = self._mapped()
        self.terms = TimeSlice()
        self._hints: deque[Packet] = deque()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._map.close()
        self.client.close()

    # ---- The page ----------------------------------------------------------------------------------------------------

    def line(self, card: int = 0) -> Line:
        place = card * LINE_BYTES
        return Line(*unpack(int.from_bytes(self._map[place : place + 8], "little")))

    def wakes(self, card: int = 0) -> int:
        """How often the entry has changed."""
        place = card * LINE_BYTES + 8
        return int.from_bytes(self._map[place : place + 4], "little")

    def sleep(self, wakes: int, card: int = 0) -> None:
        """Sleep on the entry's futex until it has changed since, at most 100 ms."""
        wait_on(self._address + card * LINE_BYTES + 8, wakes, seconds=0.1)

    def wait_open(self, card: int = 0) -> Line:
        """Request the card as often as its entry changes, until it may be used.

        A time slice that ended before it was seen counts as drained.
        """
        wait, asked = Wait(), -1
        while wait.left_s():
            wakes, line = self.wakes(card), self.line(card)
            if line.is_open:
                return line
            if line.epoch != asked:
                asked = line.epoch
                if line.state is LineState.TIMESLICE:
                    self.drained(card, epoch=line.epoch, blocked=True)
                else:
                    self.want(card, epoch=line.epoch)
            self.sleep(wakes, card)
            assert not self.is_hung_up(), "the broker is away"
        raise in_vain("the card is lent", self.line(card), wait)

    def wait_over(self, line: Line, card: int = 0) -> None:
        """Wait until that time slice has ended, by its deadline or by the broker's revocation."""
        wait = Wait()
        while (now := self.line(card)).is_open:
            if now.state is not line.state and now.state is not LineState.TIMESLICE:
                return
            if not wait.left_s():
                raise in_vain("the lease is over", now, wait)
            time.sleep(0.0002)

    # ---- What it says ------------------------------------------------------------------------------------------------

    def join(self, card: int = 0) -> Result:
        packet = self.client.ask(What.JOIN, card=card)
        self.terms = packet.timeslice
        return Result(packet.result)

    def want(self, card: int = 0, *, epoch: int | None = None) -> None:
        self.say(What.WANT, card, TimeSlice(epoch=self._epoch(epoch, card)))

    def drained(
        self, card: int = 0, *, epoch: int | None = None, blocked: bool = False, at_ns: int | None = None
    ) -> None:
        at = time.monotonic_ns() if at_ns is None else at_ns
        self.say(What.DRAINED, card, TimeSlice(at=at, epoch=self._epoch(epoch, card), is_blocked=blocked))

    def idle(self, card: int = 0, *, epoch: int | None = None) -> None:
        self.say(What.IDLE, card, TimeSlice(epoch=self._epoch(epoch, card)))

    def say(self, what: What, card: int, timeslice: TimeSlice) -> None:
        assert self.client.signals
        self.client.signals.send(wire.question(what, card=card, body=wire.lease_body(timeslice)))

    def is_hung_up(self) -> bool:
        """Whether the broker has closed the signals. Reads all notifications until then."""
        signals = self.client.signals
        assert signals
        while select.select([signals], [], [], 0)[0]:
            packet = wire.read(signals.recv(wire.BYTES + 1))
            if packet is None:
                return True
            self._hints.append(packet)
        return False

    def hint(self) -> Packet | None:
        """The next notification, if there is one."""
        assert not self.is_hung_up(), "the broker closed the signals"
        return self._hints.popleft() if self._hints else None

    def resume(self) -> Result:
        """New connections, and the page that comes with them."""
        result = self.client.resume()
        if self.client.page is None:
            return result
        self._map.close()
        self._map = self._mapped()
        return result

    def _epoch(self, epoch: int | None, card: int) -> int:
        return self.line(card).epoch if epoch is None else epoch

    def _mapped(self) -> mmap.mmap:
        assert self.client.page is not None
        mapped = mmap.mmap(self.client.page, mmap.PAGESIZE, prot=mmap.PROT_READ)
        self._address = address_of(mapped)
        return mapped


def address_of(mapped: mmap.mmap) -> int:
    """The address of a read-only map, which ctypes would not accept."""
    buffer = (ctypes.c_byte * 128)()
    assert ctypes.pythonapi.PyObject_GetBuffer(ctypes.py_object(mapped), buffer, 0) == 0
    address = ctypes.c_void_p.from_buffer(buffer).value
    ctypes.pythonapi.PyBuffer_Release(buffer)
    assert address
    return address


def wait_on(address: int, value: int, *, seconds: float) -> None:
    """Sleep on that word while it is `value`, at most this long."""
    whole, part = divmod(seconds, 1)
    wait = (ctypes.c_long * 2)(int(whole), int(part * 1e9))
    _libc.syscall(_FUTEX, ctypes.c_void_p(address), _FUTEX_WAIT, ctypes.c_uint32(value), wait, None, 0)
