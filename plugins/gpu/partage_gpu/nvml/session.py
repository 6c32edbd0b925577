"""The child's session with an open driver: answers queries of the parent, and polls the vital signs.

The signs take few calls, so that a change is known within about a second at almost no cost. The parent is only notified
that something changed; it then requests a full look.
"""

from __future__ import annotations

import os
import select
import threading
import time
from typing import Final

from partage_gpu.nvml import calls as nvml
from partage_gpu.nvml import wire
from partage_gpu.nvml.events import Watch
from partage_gpu.nvml.facts import Xid
from partage_gpu.nvml.libraries import NoDriver
from partage_gpu.nvml.parent import Parent
from partage_gpu.nvml.signs import VitalSigns
from partage_gpu.nvml.snapshot import Snapshot, samples

_EVERY_S: Final = 1.0
_MOST_PART: Final = 0.05
"""Limit for the fraction of time spent on signs, however slow the driver is."""
_SLOW_S: Final = 0.25
_KNOWN_TO_THE_KERNEL: Final = "proc/driver/nvidia/gpus"


class Session:
    """A session until the driver is gone."""

    def __init__(self, driver_root: str, parent: Parent[wire.Question, wire.Told]) -> None:
        self._parent = parent
        nvml.of_node(nvml.attach)
        nvml.gate.returned = self._returned
        self._folder = os.path.join(driver_root, _KNOWN_TO_THE_KERNEL)  # noqa: PTH118  pathlib is memory
        self._in_kernel = self._listed()
        self._look = Snapshot(driver_root)
        self._vital = VitalSigns()
        self._watch = Watch(self._reported)
        self._watch.start()
        self._signs = self._vital.read()
        self._due = time.monotonic() + _EVERY_S
        parent.tell(wire.Opened())

    def serve(self) -> None:
        """Runs until the parent is gone; raises `NoDriver` when the driver is."""
        poll = select.poll()
        poll.register(self._parent.connection, select.POLLIN)
        while True:
            wait_s = max(0.0, self._due - time.monotonic())
            if poll.poll(wait_s * 1000):
                question = self._parent.asks()
                if question is None:
                    return
                self._answer(question)
            if time.monotonic() >= self._due:
                self._look_for_signs()

    def _answer(self, question: wire.Question) -> None:
        match question:
            case wire.AskSnapshot():
                self._read_signs()  # only later changes are new to the parent
                self._parent.tell(wire.SnapshotTaken(self._look.facts()))
            case wire.AskSamples():
                self._parent.tell(wire.Sampled(nvml.of_node(samples)))

    def _look_for_signs(self) -> None:
        began = time.monotonic()
        if self._listed() != self._in_kernel:
            raise NoDriver("failed", "the machine's cards are others than when NVML was opened")
        if self._read_signs():
            self._parent.tell(wire.Changed())
        now = time.monotonic()
        self._due = now + max(_EVERY_S - (now - began), (now - began) / _MOST_PART)

    def _read_signs(self) -> bool:
        signs, before = self._vital.read(), self._signs
        self._signs = signs
        if signs != before:
            self._look.signs_changed = True
            self._watch.watch_anew()
        return signs != before

    def _returned(self) -> None:
        """Called after each NVML call: notifies the parent now and then, so that slow is not taken for hanging.

        Only the main thread counts: the thread that waits for events returns from its call all the time.
        """
        if self._parent.untold_s > _SLOW_S and threading.current_thread() is threading.main_thread():
            self._parent.tell(wire.Working())

    def _reported(self, xid: Xid) -> None:
        """Runs in the thread that waits for events."""
        self._look.signs_changed = True
        self._parent.tell(wire.Reported(xid))

    def _listed(self) -> frozenset[str]:
        """The cards that the kernel driver knows; NVML finds new ones only when it is opened again."""
        try:
            return frozenset(os.listdir(self._folder))  # noqa: PTH208  pathlib is memory
        except OSError:
            return frozenset()
