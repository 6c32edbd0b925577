"""Reservations of creates in flight: one file for each container key, shared under flock with another crishim.

What they mean is `deciding.books`' to say. The lock is held for a few file operations and never across an await, so in
one process nobody waits for it; a process that was stopped while it held the lock costs containers with grants, in
words, and nobody else.

Times are of the clock since boot, which all processes of the node share, as the folder, which no reboot survives.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import time
from collections.abc import AsyncGenerator, Callable, Generator, Iterable
from pathlib import Path
from typing import Final

import msgspec

from partage_crishim.deciding.books import Listing, Reservation, over
from partage_crishim.deciding.capacity import Held
from partage_crishim.deciding.errors import NodeNotReady
from partage_crishim.files import Facts, facts_of, write_whole

LIFETIME_S: Final = 150.0
"""kubelet gives up a create after 120 s by default; a runtime that nobody waits for any more ends it soon after."""
_LOCK_DEADLINE_S: Final = 5.0
_LOCK_PAUSE_S: Final = 0.002
_HORIZON: Final = ".horizon"
_DECODER: Final = msgspec.json.Decoder(Reservation)
_Standing = tuple[Facts, Reservation]


def since_boot() -> float:
    """Seconds."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Table:
    """The folder while it is locked."""

    def __init__(self, folder: str, standing: dict[str, _Standing], horizon_s: float) -> None:
        self._folder = folder
        self._standing = standing
        self.horizon_s = horizon_s
        """A listing that began earlier misses containers."""

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        """All that stand."""
        return tuple(reservation for _, reservation in self._standing.values())

    def write(self, reservation: Reservation) -> None:
        """Puts down one, in place of an earlier one for the same key."""
        key = reservation.held.key
        self._standing[key] = write_whole(self._folder, key, msgspec.json.encode(reservation)), reservation

    def drop(self, dropped: Iterable[Reservation], listing: Listing) -> None:
        """Takes out those for which this listing speaks; the horizon moves first, so that a crash loses nothing."""
        keys = [each.held.key for each in dropped]
        if keys:
            if self.horizon_s < listing.began_s:
                write_whole(self._folder, _HORIZON, repr(listing.began_s).encode())
                self.horizon_s = listing.began_s
            for key in keys:
                self._remove(key)

    def withdraw(self, key: str, token: str) -> None:
        """Takes out one whose create came to nothing, if it is still that one."""
        if key in self._standing and self._standing[key][1].token == token:
            self._remove(key)

    def _remove(self, key: str) -> None:
        Path(self._folder, key).unlink(missing_ok=True)
        self._standing.pop(key, None)


class Reservations:
    """The folder, and what this process knows of how its own creates ended."""

    def __init__(
        self, folder: Path, *, lifetime_s: float = LIFETIME_S, clock: Callable[[], float] = since_boot
    ) -> None:
        self._folder = str(folder)
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._standing: dict[str, _Standing] = {}
        self._horizon: tuple[Facts, float] | None = None
        self._ended_s: dict[str, float] = {}

    @contextlib.asynccontextmanager
    async def locked(self) -> AsyncGenerator[Table, None]:
        """The folder to look at and change; never await inside."""
        with self._descriptor() as lock:
            deadline = time.monotonic() + _LOCK_DEADLINE_S
            while not _locked(lock):
                if time.monotonic() > deadline:
                    raise NodeNotReady(
                        f"partage: another process holds the lock on {self._folder}; is an old crishim stuck? End it"
                    )
                await asyncio.sleep(_LOCK_PAUSE_S)
            yield self._table()

    def made(self, held: Held) -> Reservation:
        """A new one of this process; `Table.write` puts it down."""
        return Reservation(held=held, token=os.urandom(8).hex(), until_s=self._clock() + self._lifetime_s)

    def drop_over(self, table: Table, listing: Listing) -> None:
        """Takes out those for which this listing speaks."""
        dropped = over(table.reservations, listing, self._ended_s)
        table.drop(dropped, listing)
        for each in dropped:
            self._ended_s.pop(each.token, None)

    def done(self, reservation: Reservation) -> None:
        """Its create succeeded: it stays until a listing that begins from now on."""
        self._ended_s[reservation.token] = self._clock()

    def failed(self, reservation: Reservation) -> None:
        """Its create came to nothing; where the lock is held just now, the next listing takes it out."""
        with self._descriptor() as lock:
            if not _locked(lock):
                self.done(reservation)
                return
            self._table().withdraw(reservation.held.key, reservation.token)
            self._ended_s.pop(reservation.token, None)

    @contextlib.contextmanager
    def _descriptor(self) -> Generator[int, None, None]:
        try:
            descriptor = self._opened()
        except FileNotFoundError:  # the first time, or somebody cleared /run
            Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = self._opened()
        try:
            yield descriptor
        finally:
            os.close(descriptor)  # and with it the lock

    def _opened(self) -> int:
        return os.open(f"{self._folder}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _table(self) -> Table:
        """The folder as it is now; what is known of it is not read again."""
        known, self._standing, horizon_s = self._standing, {}, 0.0
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name == _HORIZON:
                    horizon_s = self._horizon_s(entry)
                elif not entry.name.startswith("."):
                    facts, standing = facts_of(entry.stat()), known.get(entry.name)
                    if standing is None or standing[0] != facts:
                        standing = facts, _load(entry.path)
                    self._standing[entry.name] = standing
        return Table(self._folder, self._standing, horizon_s)

    def _horizon_s(self, entry: os.DirEntry[str]) -> float:
        facts = facts_of(entry.stat())
        if self._horizon is None or self._horizon[0] != facts:
            self._horizon = facts, float(Path(entry.path).read_bytes())
        return self._horizon[1]


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _load(path: str) -> Reservation:
    try:
        return _DECODER.decode(Path(path).read_bytes())
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise NodeNotReady(
            f"partage: reservation {path} cannot be read; was crishim downgraded? Remove that file"
        ) from None
