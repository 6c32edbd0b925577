"""Waits for the errors that the driver reports of its cards, in a thread of the child process.

A set of events that watches a card which fell off the bus answers nothing but that. So whenever waiting fails, and
whenever the cards' signs changed, a new set is made of the cards that can be watched.
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
    """For as long as this process lives."""

    def __init__(self, tell: Callable[[Xid], None]) -> None:
        self._tell = tell
        self._anew = threading.Event()

    def start(self) -> None:
        """Returns when what happens from now on will be told, on all cards that can be watched."""
        begun = threading.Event()
        threading.Thread(target=self._run, args=(begun,), name="events", daemon=True).start()
        begun.wait()

    def watch_anew(self) -> None:
        """Other cards can be watched than before."""
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
                if failed - before < _BETWEEN_FAILURES_S:  # without the lost card it fails no more, as a rule
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
    """The watched cards' UUIDs by the addresses of their handles."""
    uuids: dict[int, str] = {}
    for index in range(nvml.count()):
        try:
            handle = nvml.card(index)
            uuid = nvml.uuid(handle)
            if nvml.register_xids(handle, events):
                uuids[nvml.address(handle)] = uuid
        except NvmlError:  # a lost card, or a driver that has no events
            continue
    return uuids
