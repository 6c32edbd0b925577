"""Ends a process whose plugin hangs: a scheduler that waits for ever is worse than one that starts again.

A thread looks at the running call. It cannot run while a plugin's native code holds the interpreter, so at each look
it also arms the interpreter's own C-level timer, which then writes the stack (plugin file and hook are in it) and ends
the process.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Final

from partage_plugins.registry.calls import Activity, Call

EXIT_HUNG: Final = 1


class Watchdog:
    """Watches one side's activity; `start` it once, `stop` it before the process ends."""

    def __init__(self, activity: Activity, *, deadline_s: float, end: Callable[[Call], None] | None = None) -> None:
        self._activity = activity
        self._deadline_s = deadline_s
        self._end = end or _end_process
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="plugin-watchdog", daemon=True)

    def start(self) -> None:
        """Begins to watch."""
        self._thread.start()

    def stop(self) -> None:
        """Stops watching and disarms the timer."""
        self._stopped.set()
        self._thread.join()
        faulthandler.cancel_dump_traceback_later()

    def _watch(self) -> None:
        seen, since = -1, time.monotonic()
        while not self._stopped.wait(self._deadline_s / 10):
            faulthandler.dump_traceback_later(self._deadline_s * 2, exit=True, file=sys.__stderr__ or 2)
            call, serial = self._activity.current, self._activity.serial
            if call is None or serial != seen:
                seen, since = serial, time.monotonic()
            elif time.monotonic() - since >= self._deadline_s:
                self._end(call)
                return


def _end_process(call: Call) -> None:
    """Says who hangs, shows where, and ends the process without asking it: it would hang too."""
    line = f"partage: plugin {call.plugin} hangs in {call.hook}; ending the process so that it starts again\n"
    os.write(2, line.encode())
    faulthandler.dump_traceback(file=2, all_threads=True)
    os._exit(EXIT_HUNG)
