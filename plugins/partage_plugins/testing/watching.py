"""Knows which hook runs and for how long, even when the interpreter is held or the process is dead.

The kernel's timer ends the process when one call takes too long: its default action needs no Python, so native code
that holds the interpreter cannot keep it off. Which call that was stands in the black box.
"""

from __future__ import annotations

import faulthandler
import signal

from partage_plugins.host.blackbox import BlackBox, RecordedActivity
from partage_plugins.registry.calls import Call

HUNG = signal.SIGALRM
"""By this signal dies a process whose plugin hangs."""


class Broken(Exception):
    """A promise is broken, and how."""


class TimedActivity(RecordedActivity):
    """An activity that ends the process when a call takes too long."""

    def __init__(self, box: BlackBox, *, call_s: float, deadly: frozenset[tuple[str, str]]) -> None:
        """`deadly` are plugins with hooks that ended earlier processes: they are not called again."""
        super().__init__(box)
        self._call_s = call_s
        self._deadly = deadly
        self.counts: dict[str, int] = {}
        signal.signal(HUNG, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [HUNG])
        faulthandler.enable()
        faulthandler.register(HUNG, chain=True)  # shows where, then dies of the default action

    def begin(self, plugin: str, hook: str) -> None:
        """A plugin's code begins to run."""
        if (plugin, hook) in self._deadly:
            raise Broken(f"plugin {plugin} ended this process in {hook} in the checks above and was not asked again")
        self.counts[hook] = self.counts.get(hook, 0) + 1
        self._box.note(plugin, hook)
        signal.setitimer(signal.ITIMER_REAL, self._call_s)

    def end(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._box.clear()

    def enter(self, call: Call) -> None:
        self.begin(call.plugin, call.hook)

    def leave(self) -> None:
        self.end()
