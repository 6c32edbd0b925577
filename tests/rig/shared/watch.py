"""Checks rigs that tests share: compares the state of each before and after a test.

Some changes by the rig itself, such as the end of a deleted pod's container, take a moment. So the state is read again
until nothing differs or the time is over.
"""

from __future__ import annotations

import time
from typing import Final

from rig.machine import slots
from rig.machine.slots import Slot
from rig.patience import Wait
from rig.shared.look import look
from rig.shared.state import State

PATIENCE_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.05
_SELDOM_S: Final = 0.4
"""Reading takes CPU time, so that each pause is twice the one before, up to this."""


class Watch:
    """Watches all rigs of this process. Those that exist before a test are shared: the test's own do not exist yet."""

    def __init__(self, patience_s: float = PATIENCE_S) -> None:
        self._patience_s = patience_s
        self._last: dict[Slot, State] = {}

    def before(self) -> dict[Slot, State]:
        return {slot: self._settled(slot) for slot in slots.held()}

    def after(self, before: dict[Slot, State]) -> list[str]:
        """What the test left or removed; rigs that have ended meanwhile are skipped."""
        there = [slot for slot in slots.held() if slot in before]
        return [f"rig {slot.number}: {line}" for slot in there for line in self._changes(slot, before[slot])]

    def _settled(self, slot: Slot) -> State:
        """The state once two reads agree, because wider fixtures may still be creating something."""
        wait, pause_s = Wait(self._patience_s), _LOOK_EVERY_S
        earlier, now = self._last.get(slot), look(slot)
        while earlier is None or (earlier.what_changed(now) and wait.left_s()):
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _SELDOM_S)
            earlier, now = now, look(slot)
        return now

    def _changes(self, slot: Slot, before: State) -> list[str]:
        wait, pause_s = Wait(self._patience_s), _LOOK_EVERY_S
        while changes := before.what_changed(now := look(slot)):
            if not wait.left_s():
                break
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _SELDOM_S)
        self._last[slot] = now
        return changes
