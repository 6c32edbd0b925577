"""Reservations of creates in flight: one file for each container key, shared under flock with another crishim.

`rules.holdings` says what they mean. The lock is held for a few file operations and never across an await, so no task
of this process waits for it. While another process is stopped with the lock, containers with grants are refused, in
words, and no others. Times are of the clock since boot, which all processes of the node share, as the folder, which no
reboot survives.

A create waits for this, so the folder is read again only after another process changed it. The file of the lock holds a
word. A process writes a new word there before it changes the folder, so even one that dies on the way has told the
others. A file that is removed by hand shows in the folder's own time.

A file that cannot be read, such as half a file of an older crishim, says nothing about any card. It is removed with a
line in the log, and the horizon moves to that moment. So the runtime's list counts whatever was created under it.
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
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import Holding, Listing, Reservation, over

LIFETIME_S: Final = 150.0
"""kubelet gives up a create after 120 s by default; the runtime ends it soon after."""
_LOCK_DEADLINE_S: Final = 5.0
_LOCK_PAUSE_S: Final = 0.002
_HORIZON: Final = ".horizon"
_WORD_BYTES: Final = 8
_DECODER: Final = msgspec.json.Decoder(Reservation)
_Stamp = tuple[int, int]
"""What another file in the same place differs by: each is written whole."""
_Standing = tuple[_Stamp, Reservation]
_State = tuple[bytes, int]
"""The word, and the folder's time."""
_log: Final = structlog.get_logger()


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


class Table:
    """What one process knows of the folder, and of the horizon in it; only to be used while the lock is held."""

    def __init__(self, folder: str, clock: Callable[[], float]) -> None:
        self.horizon_s = 0.0
        """A listing that began earlier misses containers."""
        self._folder = folder
        self._clock = clock
        self._lock = -1
        self._state: _State | None = None
        """Of the folder when all of it was known; None where it may have changed since."""
        self._is_changed = False
        self._standing: dict[str, _Standing] = {}
        self._horizon: _Stamp | None = None

    @property
    def reservations(self) -> tuple[Reservation, ...]:
        return tuple([reservation for _, reservation in self._standing.values()])

    def look(self, lock: int) -> None:
        """The lock is held by this descriptor from now on; what others changed since the last time is read."""
        self._lock, self._is_changed = lock, False
        state = self._now()
        if not state[0] or state != self._state:
            self._state = None
            unreadable = self._read()
            self._state = state
            if unreadable:
                self._drop_unreadable(unreadable)

    def settle(self) -> None:
        """The lock is about to be let go, and all that was begun was done: what we changed we know."""
        if self._is_changed:
            self._state = self._now()

    def write(self, reservation: Reservation) -> None:
        """Puts down one, in place of an earlier one for the same key."""
        self._begin()
        key = reservation.held.key
        self._standing[key] = self._write(key, msgspec.json.encode(reservation)), reservation

    def drop(self, dropped: Iterable[Reservation], listing: Listing) -> None:
        """Takes out those for which this listing speaks; the horizon moves first, so that a crash loses nothing."""
        keys = [each.held.key for each in dropped]
        if keys:
            self._begin()
            if self.horizon_s < listing.began_s:
                self._move_horizon(listing.began_s)
            for key in keys:
                self._remove(key)

    def withdraw(self, key: str, token: str) -> None:
        """Takes out one whose create came to nothing, if it is still that one."""
        if key in self._standing and self._standing[key][1].token == token:
            self._begin()
            self._remove(key)

    def end(self, key: str, token: str, now_s: float) -> None:
        """Writes down that a create is over, so that its reservation does not outlive the crishim that made it."""
        if key in self._standing and self._standing[key][1].token == token:
            self.write(replace(self._standing[key][1], until_s=now_s))

    def _begin(self) -> None:
        """Tells the others before anything changes."""
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

    def _move_horizon(self, began_s: float) -> None:
        self._horizon = self._write(_HORIZON, repr(began_s).encode())
        self.horizon_s = began_s

    def _read(self) -> list[str]:
        """Reads what is not known; answers the names of what cannot be read."""
        known, self._standing, horizon = self._standing, {}, None
        unreadable: list[str] = []
        with os.scandir(self._folder) as entries:
            for entry in entries:
                if entry.name == _HORIZON:
                    horizon = _stamp(entry.stat())
                    if horizon != self._horizon and not self._know_horizon(entry.path):
                        unreadable.append(entry.name)
                elif entry.name.startswith(UNFINISHED):  # of a writer that was killed: the lock is ours
                    unreadable.append(entry.name)
                elif not entry.name.startswith("."):
                    standing = _standing(entry, known.get(entry.name))
                    if standing is None:
                        unreadable.append(entry.name)
                    else:
                        self._standing[entry.name] = standing
        if horizon is None:
            self.horizon_s = 0.0
        self._horizon = horizon
        return unreadable

    def _know_horizon(self, path: str) -> bool:
        """Whether it is a time that has been."""
        try:
            self.horizon_s = float(Path(path).read_bytes())
        except ValueError:
            return False
        return 0.0 <= self.horizon_s <= self._clock()

    def _drop_unreadable(self, names: Iterable[str]) -> None:
        self._begin()
        self._move_horizon(self._clock())
        for name in names:
            if name != _HORIZON:
                Path(self._folder, name).unlink(missing_ok=True)
            _log.warning("a file of a create cannot be read and is taken away", file=f"{self._folder}/{name}")


def _standing(entry: os.DirEntry[str], known: _Standing | None) -> _Standing | None:
    """What it says; None where it cannot be read."""
    stamp = _stamp(entry.stat())
    if known is not None and known[0] == stamp:
        return known
    reservation = _load(entry.path)
    return (stamp, reservation) if reservation is not None else None


def _load(path: str) -> Reservation | None:
    try:
        return _DECODER.decode(Path(path).read_bytes())
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_ino, status.st_mtime_ns
