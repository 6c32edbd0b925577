"""The child process that alone loads NVML: what processes hold of a card, and what the driver lets containers have.

NVML is called in the main thread, which may hang in it for ever; another thread waits for the end of the parent, so
that a child that hangs does not outlive it. When the driver is gone or another one, this process ends: only a new one
loads a new library and finds new cards.

By ctypes and without pynvml, which would cost this process half of its memory. A process may be in the compute, the
graphics and the MPS list, in each with all that it holds; and several times in one list, once for each MIG instance.

A card is blind where it has no list, or tells the bytes of none of its processes. It stays so until the bytes of some
process are told: an empty list proves nothing there.
"""

from __future__ import annotations

import ctypes
import os
import resource
import socket
import sys
import time
from typing import Any, Final

from partage_gpu.driver_root import LIBRARY, installed_root, library_below
from partage_gpu.nvml.parent import end_with_parent, give_memory_back
from partage_isolation.audit.nvml_limits import has_limits, limit
from partage_isolation.audit.nvml_messages import (
    MAX_BYTES,
    MOST_PROCESSES,
    AskLimit,
    CardRefused,
    Ended,
    Limited,
    Question,
    Ready,
    Told,
    Unseen,
    Used,
    encoded,
    question,
)

_LISTS: Final = ("Compute", "Graphics", "MPSCompute")
_INVALID, _NOT_SUPPORTED, _NO_PERMISSION, _NOT_FOUND, _TOO_SMALL, _NO_FUNCTION = 2, 3, 4, 6, 7, 13
_OF_ONE_CARD: Final = frozenset((_INVALID, _NOT_SUPPORTED, _NO_PERMISSION, _NOT_FOUND, _TOO_SMALL, 15, 16))
"""The last two: it fell off the bus, or wants a reset. Everything else means that the driver is gone."""
_UNKNOWN: Final = 2**64 - 1
"""The driver does not say how much, as on cards without memory of their own."""
_FIRST_ROOM: Final = 32
_TRIES: Final = 5


class NoDriver(Exception):
    """There is no driver to ask, or it is not the same one any more."""

    has_library = True


class NoNvml(NoDriver):
    has_library = False


class NoAnswer(Exception):
    """The driver answers with an error that concerns this card alone."""


class _Failed(Exception):
    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class _Process(ctypes.Structure):
    """As NVML lists it, in the second and third version of its lists."""

    _fields_ = (
        ("pid", ctypes.c_uint),
        ("bytes", ctypes.c_ulonglong),
        ("gpu_instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    )


class Library:
    def __init__(self, driver_root: str) -> None:
        path = library_below(driver_root)
        if path is None:
            raise NoNvml(f"there is no {LIBRARY} below {driver_root}; is NVIDIA's driver installed there?")
        try:
            self._nvml = ctypes.CDLL(path)
            self._nvml.nvmlErrorString.restype = ctypes.c_char_p
            number = self._nvml.nvmlInit_v2()
            self._lists = [one for one in map(self._list, _LISTS) if one is not None]
        except (OSError, AttributeError) as error:
            raise NoNvml(f"{path} cannot be loaded: {error}") from error
        if number:
            raise NoDriver(f"NVML does not start: {self._words(number)}")
        self.has_limits = has_limits(self._nvml)
        self._handles: dict[str, ctypes.c_void_p] = {}
        self._blind: set[str] = set()

    def use(self, card: str) -> Used | Unseen:
        """Now; raises `NoAnswer` or `NoDriver`."""
        try:
            try:
                return self._used(card)
            except _Failed:
                if self._handles.pop(card, None) is None:
                    raise
            return self._used(card)  # an instance that was created again has another handle
        except _Failed as failed:
            if failed.number in _OF_ONE_CARD:
                raise NoAnswer(self._words(failed.number)) from None
            raise NoDriver(f"NVML does not answer any more: {self._words(failed.number)}") from None

    def limit(self, asked: AskLimit) -> Limited:
        """Whatever goes wrong costs this limit alone; whether the driver is gone, the next sample finds out."""
        try:
            number = limit(self._nvml, self._handle(asked.card), asked.group, asked.bytes)
        except _Failed as failed:
            number = failed.number
        return Limited(asked.card, asked.group, number, self._words(number) if number else "")

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
        return Used(card, taken_ns, processes)

    def _processes(self, handle: ctypes.c_void_p) -> dict[int, int | None] | None:
        """Bytes by pid; None where the card has no list of those that compute."""
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
        """One list; None where the card has no such thing."""
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
            room = 2 * count.value + _FIRST_ROOM  # more may come before the next call
        raise _Failed(number)

    def _list(self, kind: str) -> Any | None:  # noqa: ANN401  ctypes makes it
        """The newest version of a list that this driver has; only the compute list must be there."""
        for version in ("_v3", "_v2"):
            found = getattr(self._nvml, f"nvmlDeviceGet{kind}RunningProcesses{version}", None)
            if found is not None:
                return found
        if kind == _LISTS[0]:
            raise AttributeError("it cannot list processes")
        return None

    def _words(self, number: int) -> str:
        words: bytes | None = self._nvml.nvmlErrorString(number)
        return f"{(words or b'no words for it').decode(errors='replace')} ({number})"


def _greater(one: int | None, other: int | None) -> int | None:
    """What is not known in one list is not known."""
    return None if one is None or other is None else max(one, other)


def _check(number: int) -> None:
    if number:
        raise _Failed(number)


def main(said: str) -> None:
    """Until the parent or the driver is gone; `said` is where people say that the driver is."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    connection = socket.socket(fileno=0)
    end_with_parent()
    try:
        library = Library(installed_root(said))
        give_memory_back()
        _tell(connection, Ready(has_limits=library.has_limits))
        while packet := connection.recv(MAX_BYTES):
            _tell(connection, _answer(library, question(packet)))
    except NoDriver as gone:
        _tell(connection, Ended(str(gone), has_library=gone.has_library))
    # No finalisation: nothing of the driver's runs any more.
    os._exit(0)


def _answer(library: Library, asked: Question) -> Told:
    if isinstance(asked, AskLimit):
        return library.limit(asked)
    try:
        return library.use(asked.card)
    except NoAnswer as error:
        return CardRefused(asked.card, str(error))


def _tell(connection: socket.socket, message: Told) -> None:
    """Without a parent there is nothing left to do here."""
    try:
        connection.send(encoded(message))
    except OSError:
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1])
