"""Waits for the driver's card errors, in a thread of the child process.

An event set with a card that fell off the bus returns only that error. So whenever waiting fails, and whenever the
cards' signs change, a new set is created with the cards that can be watched.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from partage_gpu.nvml import calls as nvml
from partage_gpu.nvml.calls import EventSet, NvmlError
from partage_gpu.nvml.facts import Xid

_WAIT_MS: Final = 1000
_BETWEEN_FAILURES_S: Final = 1.0


class Watch:
    """Watches for the life of this process."""

    def __init__(self, tell: Callable[[Xid], None]) -> None:
        self._tell = tell
        self._anew = threading.Event()

    def start(self) -> None:
        """Starts the thread; returns once all later errors, on all cards that can be watched, will be reported."""
        begun = threading.Event()
        threading.Thread(target=self._run, args=(begun,), name="events", daemon=True).start()
        begun.wait()

    def watch_anew(self) -> None:
        """Recreates the event set, since the cards that can be watched have changed."""
        self._anew.set()

    def _run(self, begun: threading.Event) -> None:
        failed = float("-inf")
        while True:
            self._anew.clear()
            try:
                self._watch(begun)
            except NvmlError:  # of a card or the driver: the signs show which
                begun.set()
                before, failed = failed, time.monotonic()
                if failed - before < _BETWEEN_FAILURES_S:  # without the lost card it usually succeeds
                    self._anew.wait(_BETWEEN_FAILURES_S)

    def _watch(self, begun: threading.Event) -> None:
        events = nvml.event_set()
        try:
            uuids = _registered(events)
            begun.set()
            if not uuids:
                self._anew.wait()
            while not self._anew.is_set():
                reported = nvml.wait(events, _WAIT_MS)
                if reported is not None and reported[0] in uuids:
                    self._tell(Xid(uuid=uuids[reported[0]], number=reported[1]))
        finally:
            nvml.free(events)


def _registered(events: EventSet) -> dict[int, str]:
    """Registers the cards; returns their UUIDs by the addresses of their handles."""
    uuids: dict[int, str] = {}
    for index in range(nvml.count()):
        try:
            handle = nvml.card(index)
            uuid = nvml.uuid(handle)
            if nvml.register_xids(handle, events):
                uuids[nvml.address(handle)] = uuid
        except NvmlError:  # a lost card, or a driver without events
            continue
    return uuids
