"""The node file's fields that tests read, in the layout of node_file.h."""

from __future__ import annotations

import ctypes
import mmap
from typing import Final

ROWS: Final = 64
STARTING, RUNNING, RELOADING, GONE = range(4)
HEALTHY, LOST = range(2)
_CARD_BYTES: Final = 20184
_MODEL_BYTES: Final = 656


class Event(ctypes.Structure):
    _fields_ = (("type", ctypes.c_uint64), ("data", ctypes.c_uint64), ("card", ctypes.c_uint32), ("_", ctypes.c_uint32))
    type: int
    data: int
    card: int

    def __repr__(self) -> str:
        return f"Event(type={self.type}, data={self.data}, card={self.card})"


class Trouble(ctypes.Structure):
    _fields_ = (("delay_ns", ctypes.c_uint64), ("hang", ctypes.c_uint32), ("answer", ctypes.c_uint32))
    delay_ns: int
    hang: int
    answer: int


class Sample(ctypes.Structure):
    _fields_ = (
        ("wall", ctypes.c_uint64),
        ("busy_milli", ctypes.c_uint32),
        ("memory_milli", ctypes.c_uint32),
        ("row_busy_milli", ctypes.c_uint32 * ROWS),
    )
    wall: int
    busy_milli: int
    row_busy_milli: list[int]


class Card(ctypes.Structure):
    _fields_ = (
        ("name", ctypes.c_char * 96),
        ("uuid", ctypes.c_char * 48),
        ("_more", ctypes.c_char * (_MODEL_BYTES - 144)),
        ("health", ctypes.c_uint32),
        ("last_xid", ctypes.c_uint32),
        ("used", ctypes.c_uint64),
        ("peak", ctypes.c_uint64),
        ("ecc_corrected", ctypes.c_uint64),
        ("ecc_uncorrected", ctypes.c_uint64),
        ("busy_ns", ctypes.c_uint64),
        ("copied_ns", ctypes.c_uint64),
        ("fault", ctypes.c_uint32 * ROWS),
        ("locked", ctypes.c_uint32 * ROWS),
        ("stuck", ctypes.c_uint32 * ROWS),
        ("pid", ctypes.c_uint32 * ROWS),
        ("row_bytes", ctypes.c_uint64 * ROWS),
        ("row_peak", ctypes.c_uint64 * ROWS),
        ("blind", ctypes.c_uint32),
        ("_pad", ctypes.c_uint32),
        ("samples", ctypes.c_uint64),
        ("sample", Sample * 64),
    )
    name: bytes
    uuid: bytes
    health: int
    last_xid: int
    ecc_corrected: int
    ecc_uncorrected: int
    busy_ns: int
    fault: list[int]
    stuck: list[int]
    pid: list[int]
    samples: int
    sample: list[Sample]


class NodeFile(ctypes.Structure):
    _fields_ = (
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("driver", ctypes.c_char * 32),
        ("cuda", ctypes.c_uint32),
        ("cards", ctypes.c_uint32),
        ("boot", ctypes.c_uint64),
        ("state", ctypes.c_uint32),
        ("sequence", ctypes.c_uint32),
        ("events", ctypes.c_uint32),
        ("_pad", ctypes.c_uint32),
        ("event", Event * 64),
        ("trouble", Trouble),
        ("card", Card * 32),
    )
    boot: int
    cards: int
    state: int
    events: int
    event: list[Event]
    trouble: Trouble
    card: list[Card]


assert ctypes.sizeof(Card) == _CARD_BYTES


def read(memory: mmap.mmap) -> NodeFile:
    """A copy of its current contents."""
    return NodeFile.from_buffer_copy(memory)
