"""The C timeline through ctypes, and a model of it in the plainest form.

The model goes from decision to decision and never skips anything; it remembers every run.
"""

from __future__ import annotations

import atexit
import ctypes
import mmap
import os
import subprocess
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

SIMGPU: Final = Path(__file__).parents[3] / "simgpu/native"
_FOLDER: Final = TemporaryDirectory(prefix="partage-lines-")
atexit.register(_FOLDER.cleanup)
ROWS: Final = 64
RUNS: Final = 8
DAEMON: Final = ROWS
SLICE: Final = 2_000_000
NEVER: Final = (2**64 - 1) // 4


class _Run(ctypes.Structure):
    _fields_ = (("wall", ctypes.c_uint64), ("local", ctypes.c_uint64))


class Share(ctypes.Structure):
    """Time received by one row, and its latest runs."""

    _fields_ = (("received", ctypes.c_uint64), ("runs", ctypes.c_uint64), ("run", _Run * RUNS))
    received: int
    runs: int
    run: list[_Run]

    def remembered(self) -> list[tuple[int, int]]:
        """The latest runs, oldest first."""
        numbers = range(max(0, self.runs - RUNS), self.runs)
        return [(self.run[n % RUNS].wall, self.run[n % RUNS].local) for n in numbers]


class _Row(ctypes.Structure):
    _fields_ = (("published", ctypes.c_uint64), ("pad", ctypes.c_uint64 * 7))


class _Timeline(ctypes.Structure):
    _fields_ = (
        ("current", ctypes.c_uint64),
        ("rows", ctypes.c_uint32),
        ("frozen", ctypes.c_uint32),
        ("slice_ns", ctypes.c_uint64),
        ("pad", ctypes.c_uint64 * 5),
        ("row", _Row * ROWS),
    )


class _Snapshot(ctypes.Structure):
    _fields_ = (
        ("wall", ctypes.c_uint64),
        ("slice_end", ctypes.c_uint64),
        ("row", ctypes.c_uint32),
        ("rows", ctypes.c_uint32),
        ("share", Share * ROWS),
    )


def _slot_at(current: int) -> int:
    return ctypes.sizeof(_Timeline) + (current & 0xFFFF) % (2 * ROWS + 2) * ctypes.sizeof(_Snapshot)


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(
        str(_built("lines.so", "-shared", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"))
    )
    library.sim_share_of.restype = Share
    library.sim_wall_of.restype = ctypes.c_uint64
    for function in (library.sim_advance, library.sim_row_reset, library.sim_timeline_begin):
        function.restype = None
    return library


def worker() -> Path:
    """A program that computes on the timeline in a descriptor, in a row, until it is killed."""
    return _built("worker")


@cache
def _built(name: str, *options: str) -> Path:
    built = Path(_FOLDER.name) / name
    sources = [Path(__file__).with_name("worker.c"), SIMGPU / "common/timeline.c"]
    subprocess.run(
        [
            "cc",
            "-std=gnu11",
            "-O2",
            "-fPIC",
            "-fno-strict-aliasing",
            *options,
            "-I",
            SIMGPU / "common",
            *sources,
            "-o",
            built,
        ],
        check=True,
    )
    return built


class Timeline:
    """A timeline in its own memory file, so that processes can share it."""

    def __init__(self, start: int = 0) -> None:
        self._library = _library()
        self.bytes = ctypes.c_size_t.in_dll(self._library, "timeline_bytes").value
        self.fd = os.memfd_create("timeline")
        os.ftruncate(self.fd, self.bytes)
        self.memory = mmap.mmap(self.fd, self.bytes)
        self._at = ctypes.c_char.from_buffer(self.memory)
        self._line = _Timeline.from_buffer(self.memory)
        self._library.sim_timeline_begin(ctypes.byref(self._at), ctypes.c_uint64(start))

    def close(self) -> None:
        del self._at, self._line
        self.memory.close()
        os.close(self.fd)

    def begin(self, row: int) -> None:
        """Reset the row as simgpud does when a process begins and when it is gone."""
        self._library.sim_row_reset(ctypes.byref(self._at), ctypes.c_uint32(row))

    def publish(self, row: int, end: int) -> None:
        self._line.row[row].published = end

    def published(self, row: int) -> int:
        return int(self._line.row[row].published)

    def advance(self, now: int, writer: int = DAEMON) -> None:
        self._library.sim_advance(ctypes.byref(self._at), ctypes.c_uint32(writer), ctypes.c_uint64(now))

    def share(self, row: int) -> Share:
        share: Share = self._library.sim_share_of(ctypes.byref(self._at), ctypes.c_uint32(row), None)
        return share

    def received(self, rows: int = ROWS) -> list[int]:
        return [self.share(row).received for row in range(rows)]

    def wall(self) -> int:
        wall = ctypes.c_uint64()
        self._library.sim_share_of(ctypes.byref(self._at), ctypes.c_uint32(0), ctypes.byref(wall))
        return wall.value

    def wall_of(self, share: Share, local: int) -> int:
        return int(self._library.sim_wall_of(ctypes.byref(share), ctypes.c_uint64(local)))

    def snapshot(self) -> tuple[int, list[int]]:
        """A consistent state: the wall time, and the time that each row received."""
        while True:
            current = self._line.current
            copy = _Snapshot.from_buffer_copy(self.memory, _slot_at(current))
            if self._line.current == current:
                return copy.wall, [copy.share[row].received for row in range(copy.rows)]

    def current_at(self) -> int:
        """Offset of the current snapshot."""
        return _slot_at(self._line.current)

    def write(self, at: int, number: int) -> None:
        self.memory[at : at + 8] = number.to_bytes(8, "little")

    def freeze(self, *, frozen: bool) -> None:
        self._line.frozen = int(frozen)

    def slice(self, nanoseconds: int) -> None:
        self._line.slice_ns = nanoseconds


@dataclass
class Model:
    """The rules: with several ready rows, one slice each in turn; a single ready row runs on."""

    rows: int
    slice: int = SLICE
    wall: int = 0
    row: int = 0
    slice_end: int = 0
    published: list[int] = field(default_factory=list)
    received: list[int] = field(default_factory=list)
    runs: list[list[tuple[int, int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.published, self.received = [0] * self.rows, [0] * self.rows
        self.runs = [[(0, 0)] for _ in range(self.rows)]  # a row is assigned to a process at 0
        self._ran: tuple[int, int] | None = None  # the last row to run, and until when

    def advance(self, now: int) -> None:
        while self.wall < now and (ready := self._ready()):
            if self.row not in ready or (len(ready) > 1 and self.wall >= self.slice_end):
                self._turn(ready)
            self._run(now, alone=len(ready) == 1)
        self.wall = max(self.wall, now)

    def _ready(self) -> list[int]:
        return [row for row in range(self.rows) if self.published[row] > self.received[row]]

    def _turn(self, ready: list[int]) -> None:
        self.row = min(ready, key=lambda row: (row - self.row - 1) % ROWS)
        self.slice_end = self.wall + self.slice

    def _run(self, now: int, *, alone: bool) -> None:
        row = self.row
        time = min(self.published[row] - self.received[row], now - self.wall)
        time = time if alone else min(time, self.slice_end - self.wall)
        if self._ran != (row, self.wall):
            self.runs[row].append((self.wall, self.received[row]))
        self.received[row] += time
        self.wall += time
        self._ran = (row, self.wall)
