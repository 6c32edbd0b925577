"""Reservations of creates in flight: one file for each container key, shared under flock with another crishim.

`rules.holdings` says what they mean, and `table` what the files are. The lock is held for a few file operations and
never across an await, so no task of this process waits for it. While another process is stopped with the lock,
containers with grants are refused, in words, and no others.

Times are of the clock since boot, which all processes of the node share, as the folder, which no reboot survives.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from typing import Final

from partage_crishim.rules.capacity import Holding
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import Listing, Reservation, over
from partage_crishim.table import Table

LIFETIME_S: Final = 150.0
"""kubelet gives up a create after 120 s by default; the runtime ends it soon after."""
_LOCK_DEADLINE_S: Final = 5.0
_LOCK_PAUSE_S: Final = 0.002


def since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Reservations:
    """The folder, and what this process knows of how its own creates ended."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = since_boot) -> None:
        self._folder = str(folder)
        self._clock = clock
        self._table = Table(self._folder, clock)
        self._ended_s: dict[str, float] = {}

    @contextlib.asynccontextmanager
    async def locked(self) -> AsyncGenerator[Table, None]:
        """The folder to look at and change; never await inside."""
        deadline = time.monotonic() + _LOCK_DEADLINE_S
        while True:
            with self.locked_at_once() as table:
                if table is not None:
                    yield table
                    return
            if time.monotonic() > deadline:
                raise NodeNotReady(
                    f"partage: another process holds the lock on {self._folder}; is an old crishim stuck? End it"
                )
            await asyncio.sleep(_LOCK_PAUSE_S)

    @contextlib.contextmanager
    def locked_at_once(self) -> Generator[Table | None, None, None]:
        """The same without waiting: None where another process holds the lock."""
        lock = self._opened()
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
                return
            self._table.look(lock)
            yield self._table
            self._table.settle()
        finally:
            os.close(lock)  # and with it the lock

    def made(self, held: Holding) -> Reservation:
        """A new one of this process; `Table.write` puts it down."""
        return Reservation(held=held, token=os.urandom(8).hex(), until_s=self._clock() + LIFETIME_S)

    def drop_over(self, table: Table, listing: Listing) -> None:
        """Takes out those for which this listing speaks."""
        dropped = over(table.reservations, listing, self._ended_s)
        table.drop(dropped, listing)
        for each in dropped:
            self._ended_s.pop(each.token, None)

    def done(self, reservation: Reservation) -> None:
        """Its create succeeded: it stays until a listing that begins from now on, whichever crishim lists then."""
        now_s = self._ended_s[reservation.token] = self._clock()
        with contextlib.suppress(OSError), self.locked_at_once() as table:
            if table is not None:
                table.end(reservation.held.key, reservation.token, now_s)

    def failed(self, reservation: Reservation) -> None:
        """Its create came to nothing; where the lock is held just now, the next listing takes it out."""
        with self.locked_at_once() as table:
            if table is None:
                self.done(reservation)
                return
            table.withdraw(reservation.held.key, reservation.token)
            self._ended_s.pop(reservation.token, None)

    def _opened(self) -> int:
        path, flags = f"{self._folder}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:  # the first time, or /run was cleared
            Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(path, flags, 0o600)
