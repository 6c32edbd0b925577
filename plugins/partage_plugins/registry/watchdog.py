"""Ends a process whose plugin hangs: a scheduler that blocks is worse than one that restarts.

A thread polls the running call. It cannot run while a plugin's native code holds the GIL, so at each poll it also sets
the kernel's alarm timer further ahead. When that expires, faulthandler writes the stack without the interpreter's help
(it names the plugin's file and hook), and the signal ends the process. The same happens to a process that was stopped
for that long. `SIGALRM` is reserved for this module.
"""

from __future__ import annotations

import faulthandler
import os
import signal
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
        faulthandler.register(signal.SIGALRM, file=2, all_threads=True, chain=True)
        self._thread.start()

    def stop(self) -> None:
        """Stops watching and disarms the timer."""
        self._stopped.set()
        self._thread.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.unregister(signal.SIGALRM)

    def _watch(self) -> None:
        seen, since = -1, time.monotonic()
        while not self._stopped.wait(self._deadline_s / 10):
            signal.setitimer(signal.ITIMER_REAL, self._deadline_s * 2)
            call, serial = self._activity.current, self._activity.serial
            if call is None or serial != seen:
                seen, since = serial, time.monotonic()
            elif time.monotonic() - since >= self._deadline_s:
                self._end(call)
                return


def _end_process(call: Call) -> None:
    """Prints the hanging plugin and all stacks, and exits without cleanup, which would hang as well."""
    line = f"partage: plugin {call.plugin} hangs in {call.hook}; ending the process so that it starts again\n"
    os.write(2, line.encode())
    faulthandler.dump_traceback(file=2, all_threads=True)
    os._exit(EXIT_HUNG)
