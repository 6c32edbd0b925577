"""The child process that alone loads NVML: processes' memory on a card, and the driver's own limits of containers.

Uses ctypes instead of pynvml, which would take half of this process's memory. A process may be in the compute, graphics
and MPS lists, in each with all its memory; and several times in one list, once for each MIG instance.

A card is blind if it has no list, or reports the memory of none of its processes. It stays blind until some process's
memory is reported: an empty list proves nothing there.

From branch 615 on the driver itself can enforce a limit on a cgroup. The soft limit stays 0. It would reserve memory,
and not only for the cgroup: the driver adds it to every ancestor, where it stays when the container's cgroup is
removed. Without a soft limit, the limit ends with its cgroup.
"""

from __future__ import annotations

import ctypes
import sys
import time
from typing import Any, Final

from partage_gpu.nvml.libraries import NoDriver, kind_of, words_of
from partage_gpu.nvml.parent import Parent, give_memory_back, live
from partage_isolation.audit.nvml_messages import (
    LONGEST_TEXT,
    MOST_PROCESSES,
    WORDS,
    AskLimit,
    BrokerReport,
    CardRefused,
    Limited,
    Question,
    Ready,
    Unseen,
    Used,
)

_LISTS: Final = ("Compute", "Graphics", "MPSCompute")
_INVALID, _NOT_SUPPORTED, _NO_PERMISSION, _NOT_FOUND, _TOO_SMALL, _NO_FUNCTION = 2, 3, 4, 6, 7, 13
_OF_ONE_CARD: Final = frozenset((_INVALID, _NOT_SUPPORTED, _NO_PERMISSION, _NOT_FOUND, _TOO_SMALL, 15, 16))
"""The last two: it fell off the bus, or needs a reset. All other errors mean that the driver is gone."""
_UNKNOWN: Final = 2**64 - 1
"""The driver does not report the amount, as on cards without memory of their own."""
_FIRST_ROOM: Final = 32
_TRIES: Final = 5
_LIMIT: Final = "nvmlDeviceSetMemoryLimits_v1"


class NoAnswer(Exception):
    """The driver returned an error that concerns this card alone."""


class _Failed(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Process(ctypes.Structure):
    """NVML's entry, in the second and third version of its lists."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class _Limits(ctypes.Structure):
    _fields_ = (("cgroup", ctypes.c_char_p), ("soft", ctypes.c_ulonglong), ("hard", ctypes.c_ulonglong))


class Library:
    def __init__(self, nvml: ctypes.CDLL) -> None:
        """`nvml` is open."""
        self._nvml = nvml
        self._lists = [one for one in map(self._list, _LISTS) if one is not None]
        self.has_limits = hasattr(nvml, _LIMIT)
        self._handles: dict[str, ctypes.c_void_p] = {}
        self._blind: set[str] = set()

    def use(self, card: str) -> Used | Unseen:
        """Take a sample; raises `NoAnswer` or `NoDriver`."""
        try:
            try:
                return self._used(card)
            except _Failed:
                if self._handles.pop(card, None) is None:
                    raise
            return self._used(card)  # a recreated instance has another handle
        except _Failed as failed:
            if failed.number in _OF_ONE_CARD:
                raise NoAnswer(words_of(self._nvml, failed.number)) from None
            words = words_of(self._nvml, failed.number)
            raise NoDriver(kind_of(failed.number), f"NVML does not answer any more: {words}") from None

    def limit(self, asked: AskLimit) -> Limited:
        """Set a limit. An error affects this limit alone; if the driver is gone, the next sample notices."""
        limits = _Limits(asked.group.encode(), 0, asked.bytes)
        try:
            number: int = getattr(self._nvml, _LIMIT)(self._handle(asked.card), ctypes.byref(limits))
        except _Failed as failed:
            number = failed.number
        why = words_of(self._nvml, number)[:LONGEST_TEXT] if number else ""
        return Limited(asked.card, asked.group, number, why)

    def _used(self, card: str) -> Used | Unseen:
        if card not in self._handles:
            self._handles[card] = self._handle(card)
        taken_ns, processes = time.monotonic_ns(), self._processes(self._handles[card])
        if processes is None or (processes and all(held is None for held in processes.values())):
            self._blind.add(card)
        elif processes:
            self._blind.discard(card)
        if processes is None or card in self._blind:
            return Unseen(card, taken_ns)
        if len(processes) > MOST_PROCESSES:
            raise NoAnswer(f"{len(processes)} processes are on it; allowed: {MOST_PROCESSES}")
        return Used(card, taken_ns, tuple(processes.items()))

    def _processes(self, handle: ctypes.c_void_p) -> dict[int, int | None] | None:
        """Bytes by pid; None if the card has no list of compute processes."""
        places = dict[tuple[int, int, int], int | None]()
        for number, one in enumerate(self._lists):
            entries = self._entries(one, handle)
            if entries is None and number == 0:
                return None
            for entry in entries or ():
                place = entry.pid, entry.gpu_instance, entry.compute_instance
                places[place] = _greater(places.get(place, 0), None if entry.bytes == _UNKNOWN else entry.bytes)
        processes = dict[int, int | None]()
        for (pid, _, _), held in places.items():
            before = processes.get(pid, 0)
            processes[pid] = None if held is None or before is None else before + held
        return processes

    def _handle(self, card: str) -> ctypes.c_void_p:
        handle = ctypes.c_void_p()
        _check(self._nvml.nvmlDeviceGetHandleByUUID(card.encode(), ctypes.byref(handle)))
        return handle

    def _entries(self, one: Any, handle: ctypes.c_void_p) -> list[_Process] | None:  # noqa: ANN401
        """One list; None if the card does not support it."""
        room, number = _FIRST_ROOM, _TOO_SMALL
        for _ in range(_TRIES):
            entries, count = (_Process * room)(), ctypes.c_uint(room)
            number = one(handle, ctypes.byref(count), entries)
            if number == 0:
                return entries[: count.value]
            if number in (_NOT_SUPPORTED, _NO_FUNCTION):
                return None
            if number != _TOO_SMALL:
                break
            room = 2 * count.value + _FIRST_ROOM  # processes may be added before the next call
        raise _Failed(number)

    def _list(self, kind: str) -> Any | None:  # noqa: ANN401  ctypes makes it
        """The newest version of a list that this driver has; only the compute list is required."""
        for version in ("_v3", "_v2"):
            found = getattr(self._nvml, f"nvmlDeviceGet{kind}RunningProcesses{version}", None)
            if found is not None:
                return found
        if kind == _LISTS[0]:
            raise NoDriver("no-library", "the NVIDIA driver's library cannot list processes")
        return None


def _greater(one: int | None, other: int | None) -> int | None:
    """An amount that is unknown in one list is unknown."""
    return None if one is None or other is None else max(one, other)


def _check(number: int) -> None:
    if number:
        raise _Failed(number)


def _session(_: str, nvml: ctypes.CDLL, parent: Parent[Question, BrokerReport]) -> None:
    library = Library(nvml)
    give_memory_back()
    parent.tell(Ready(has_limits=library.has_limits))
    while (question := parent.asks()) is not None:
        parent.tell(_answer(library, question))


def _answer(library: Library, asked: Question) -> BrokerReport:
    if isinstance(asked, AskLimit):
        return library.limit(asked)
    try:
        return library.use(asked.card)
    except NoAnswer as error:
        return CardRefused(asked.card, str(error)[:LONGEST_TEXT])


if __name__ == "__main__":
    live(sys.argv[1], WORDS, _session)
