"""Reservations of creates in flight: one file per container key, shared under flock with another crishim.

`rules.holdings` defines their meaning. The lock is held for a few file operations and never across an await, so no task
of this process waits for it. While another process is stopped holding the lock, containers with grants, and only those,
are refused with an explanation. Times are of the clock since boot, which all processes of the node share; like the
folder, it does not survive a reboot.

A create waits for this, so the folder is reread only after another process changed it. The lock file holds a random
word. A process writes a new word there before it changes the folder, so even if it dies midway the others notice. A
file that is removed by hand shows in the folder's own mtime.

An unreadable file, such as half a file of an older crishim, reveals nothing about any card. It is removed with a log
line, and the watermark moves to the current time, so that containers created under it are counted by the runtime's
list.
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
import structlog
from msgspec.structs import replace

from partage_base.files import UNFINISHED, write_whole
from partage_crishim.decisions import Ending
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import Holding, Listing, Reservation, over

LIFETIME_S: Final = 150.0
"""kubelet abandons a create after 120 s by default; the runtime ends it soon after."""
_LOCK_DEADLINE_S: Final = 5.0
_LOCK_PAUSE_S: Final = 0.002
_WATERMARK: Final = ".horizon"
_WORD_BYTES: Final = 8
_DECODER: Final = msgspec.json.Decoder(Reservation)
_Stamp = tuple[int, int]
"""Distinguishes a file from its replacement: each is written whole."""
_Standing = tuple[_Stamp, Reservation]
_State = tuple[bytes, int]
"""The word in the lock file, and the folder's mtime."""
_log: Final = structlog.get_logger()


def since_boot() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Reservations:
    """The folder, and when the creates of this process ended."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = since_boot) -> None:
        self._folder = str(folder)
        self._clock = clock
        self._table = ReservationStore(self._folder, clock)
        self._ended_s: dict[str, float] = {}
        self.clean_up = asyncio.Event()
        """Set when a create has failed and may have left something behind."""

    @contextlib.asynccontextmanager
    async def locked(self) -> AsyncGenerator[ReservationStore, None]:
        """The locked folder, to read and change; do not await inside."""
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
    def locked_at_once(self) -> Generator[ReservationStore | None, None, None]:
        """The same without waiting: None if another process holds the lock."""
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
            os.close(lock)  # releases the lock

    def made(self, held: Holding) -> Reservation:
        """A new reservation of this process; `ReservationStore.write` stores it."""
        return Reservation(held=held, token=os.urandom(8).hex(), until_s=self._clock() + LIFETIME_S)

    def drop_over(self, table: ReservationStore, listing: Listing) -> None:
        """Remove the reservations that this listing covers."""
        dropped = over(table.reservations, listing, self._ended_s)
        table.drop(dropped, listing)
        for each in dropped:
            self._ended_s.pop(each.token, None)

    def ended(self, reservation: Reservation, ending: Ending) -> None:
        """Record the end of a create; if the outcome is unknown, the reservation stays until it expires."""
        if ending is Ending.DONE:
            self._done(reservation)
        elif ending is Ending.FAILED:
            self._failed(reservation)
            self.clean_up.set()

    def _done(self, reservation: Reservation) -> None:
        """Record a successful create.

        The reservation stays until a listing that begins after now, by any crishim.
        """
        now_s = self._ended_s[reservation.token] = self._clock()
        with contextlib.suppress(OSError), self.locked_at_once() as table:
            if table is not None:
                table.end(reservation.held.key, reservation.token, now_s)

    def _failed(self, reservation: Reservation) -> None:
        """Record a failed create; if the lock is held just now, the next listing removes the reservation."""
        with self.locked_at_once() as table:
            if table is None:
                self._done(reservation)
                return
            table.withdraw(reservation.held.key, reservation.token)
            self._ended_s.pop(reservation.token, None)

    def _opened(self) -> int:
        path, flags = f"{self._folder}/.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o600)
        except FileNotFoundError:  # first use, or /run was cleared
            Path(self._folder).mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(path, flags, 0o600)


class ReservationStore:
    """One process's view of the folder and its watermark; use only while the lock is held."""

    def __init__(self, folder: str, clock: Callable[[], float]) -> None:
        self.watermark_s = 0.0
        """A listing that began earlier misses containers."""
        self._folder = folder
        self._clock = clock
        self._lock = -1
        self._state: _State | None = None
        """The folder's state when all of it was known; None if it may have changed since."""
        self._is_changed = False
        self._standing: dict[str, _Standing] = {}
        self._watermark: _Stamp | None = None

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        return tuple([reservation for _, reservation in self._standing.values()])

    def look(self, lock: int) -> None:
        """Take the lock's descriptor, and read what others changed since the last time."""
        self._lock, self._is_changed = lock, False
        state = self._now()
        if not state[0] or state != self._state:
            self._state = None
            unreadable = self._read()
            self._state = state
            if unreadable:
                self._drop_unreadable(unreadable)

    def settle(self) -> None:
        """Record the folder's state after our own changes, before the lock is released; not called after an error."""
        if self._is_changed:
            self._state = self._now()

    def write(self, reservation: Reservation) -> None:
        """Store a reservation, replacing an earlier one for the same key."""
        self._begin()
        key = reservation.held.key
        self._standing[key] = self._write(key, msgspec.json.encode(reservation)), reservation

    def drop(self, dropped: Iterable[Reservation], listing: Listing) -> None:
        """Remove reservations that the listing covers; the watermark moves first, so that a crash loses nothing."""
        keys = [each.held.key for each in dropped]
        if keys:
            self._begin()
            if self.watermark_s < listing.began_s:
                self._move_watermark(listing.began_s)
            for key in keys:
                self._remove(key)

    def withdraw(self, key: str, token: str) -> None:
        """Remove the reservation of a failed create, if it is still the same one."""
        if key in self._standing and self._standing[key][1].token == token:
            self._begin()
            self._remove(key)

    def end(self, key: str, token: str, now_s: float) -> None:
        """Record that a create is over, so that its reservation does not outlive the crishim that made it."""
        if key in self._standing and self._standing[key][1].token == token:
            self.write(replace(self._standing[key][1], until_s=now_s))

    def _begin(self) -> None:
        """Signal other processes before anything changes."""
        if not self._is_changed:
            self._state = None
            os.pwrite(self._lock, os.urandom(_WORD_BYTES), 0)
            self._is_changed = True

    def _now(self) -> _State:
        return os.pread(self._lock, _WORD_BYTES, 0), os.stat(self._folder).st_mtime_ns  # noqa: PTH116  the folder is given as text

    def _remove(self, key: str) -> None:
        Path(self._folder, key).unlink(missing_ok=True)
        self._standing.pop(key, None)

    def _write(self, name: str, content: bytes) -> _Stamp:
        return _stamp(write_whole(f"{self._folder}/{name}", content))

    def _move_watermark(self, began_s: float) -> None:
        self._watermark = self._write(_WATERMARK, repr(began_s).encode())
        self.watermark_s = began_s

    def _read(self) -> list[str]:
        """Read what is not known; returns the names of unreadable files."""
        known, self._standing, watermark = self._standing, {}, None
        unreadable: list[str] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name == _WATERMARK:
                    watermark = _stamp(entry.stat())
                    if watermark != self._watermark and not self._know_watermark(entry.path):
                        unreadable.append(entry.name)
                elif entry.name.startswith(UNFINISHED):  # writer was killed: we hold the lock
                    unreadable.append(entry.name)
                elif not entry.name.startswith("."):
                    standing = _standing(entry, known.get(entry.name))
                    if standing is None:
                        unreadable.append(entry.name)
                    else:
                        self._standing[entry.name] = standing
        if watermark is None:
            self.watermark_s = 0.0
        self._watermark = watermark
        return unreadable

    def _know_watermark(self, path: str) -> bool:
        """Read the watermark; returns whether it is a valid time in the past."""
        try:
            self.watermark_s = float(Path(path).read_bytes())
        except ValueError:
            return False
        return 0.0 <= self.watermark_s <= self._clock()

    def _drop_unreadable(self, names: Iterable[str]) -> None:
        self._begin()
        self._move_watermark(self._clock())
        for name in names:
            if name != _WATERMARK:
                Path(self._folder, name).unlink(missing_ok=True)
            _log.warning("removed unreadable reservation", file=f"{self._folder}/{name}")


def _standing(entry: os.DirEntry[str], known: _Standing | None) -> _Standing | None:
    """The reservation in a file; None if it cannot be read."""
    stamp = _stamp(entry.stat())
    if known is not None and known[0] == stamp:
        return known
    try:
        return stamp, _DECODER.decode(Path(entry.path).read_bytes())
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_mtime_ns
