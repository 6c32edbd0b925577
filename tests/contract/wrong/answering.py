"""Scheduler plugins whose answers about nodes are wrong, late or fatal."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from typing import Any

import numpy as np
from msgspec.structs import force_setattr

from partage_fpga_template.kind import FPGA
from partage_fpga_template.scheduler import FpgaScheduler
from partage_plugins import hookimpl
from partage_plugins.answers import Fits, Scores, Slots
from partage_plugins.api import Inventory, PodRequest, Slot


class HoldsTheInterpreter(FpgaScheduler):
    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        return re.sub("(a+)+$", "", "a" * 64 + "b")


class HangsAgainstSignals(FpgaScheduler):
    """Ends only when killed."""

    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        while True:
            pass


class ReturnsTwice(FpgaScheduler):
    """Forgets that it forked: the copy continues as if it were the original."""

    def __init__(self) -> None:
        super().__init__()
        os.fork()


class ClosesFiles(FpgaScheduler):
    """Closes descriptors that it did not open."""

    def __init__(self) -> None:
        super().__init__()
        os.closerange(3, 64)


class WritesToFiles(FpgaScheduler):
    """Writes to descriptors that it did not open."""

    def __init__(self) -> None:
        super().__init__()
        for descriptor in range(3, 64):
            with contextlib.suppress(OSError):
                os.write(descriptor, b'{"check":"loads","passed":true}\n{')


class ExitsInScores(FpgaScheduler):
    def score(self, request: PodRequest, slot: Slot) -> float:
        os._exit(9)


class StartsAProcess(FpgaScheduler):
    def __init__(self) -> None:
        super().__init__()
        subprocess.Popen(["sleep", "600"])


class ScoresWithoutNumbers(FpgaScheduler):
    def score(self, request: PodRequest, slot: Slot) -> float:
        return float("nan")


class ScoresTheBatch(FpgaScheduler):
    @hookimpl
    def partage_scores(self, request: PodRequest, slots: Slots) -> Scores:
        scores = super().partage_scores(request, slots)
        return np.divide(scores, max(len(slots), 1), dtype=np.float32)


class ScoresAnew(FpgaScheduler):
    _times = 0

    def score(self, request: PodRequest, slot: Slot) -> float:
        self._times += 1
        return self._times / 1000


class UsesAnArrayTwice(FpgaScheduler):
    def __init__(self) -> None:
        super().__init__()
        self._fits = np.zeros(10_000, dtype=np.bool_)

    @hookimpl
    def partage_fits(self, request: PodRequest, slots: Slots) -> Fits:
        right = super().partage_fits(request, slots)
        self._fits[: len(slots)] = right.fits
        return right._replace(fits=self._fits[: len(slots)])


class ForgetsTheFirstNode(FpgaScheduler):
    @hookimpl
    def partage_fits(self, request: PodRequest, slots: Slots) -> Fits:
        right = super().partage_fits(request, slots)
        right.fits[0] = right.fits[0]
        return right


class ChangesTheRequest(FpgaScheduler):
    @hookimpl
    def partage_shape(self, request: PodRequest) -> int:
        shape = super().partage_shape(request)
        force_setattr(request, "containers", request.containers[::-1] + request.containers)
        return shape


class ChangesTheInventory(FpgaScheduler):
    @hookimpl
    def partage_node_added(self, slot: Slot, inventory: Inventory) -> None:
        super().partage_node_added(slot, inventory)
        inventory.kinds.pop(FPGA.name, None)  # type: ignore[attr-defined]


class ShapeOfThePod(FpgaScheduler):
    @hookimpl
    def partage_shape(self, request: PodRequest) -> Any:
        return super().partage_shape(request), request.pod.uid


class ShapeWithoutHash(FpgaScheduler):
    @hookimpl
    def partage_shape(self, request: PodRequest) -> Any:
        return [super().partage_shape(request)]


class OneShapeForAll(FpgaScheduler):
    @hookimpl
    def partage_shape(self, request: PodRequest) -> Any:
        return "fpga"

    def score(self, request: PodRequest, slot: Slot) -> float:
        return 0.5


class FitsWithoutItsKind(FpgaScheduler):
    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        return None if not self._free[slot] else super().why_not(request, slot)


class VetoesOtherPods(FpgaScheduler):
    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        return super().why_not(request, slot) if self._free[slot] else "no FPGA boards"
