"""Node plugins that start, discover or end wrongly."""

from __future__ import annotations

import itertools
import os
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from partage_fpga_template.kind import FpgaPart
from partage_fpga_template.node import FpgaNode
from partage_plugins import hookimpl
from partage_plugins.api import ContainerKey
from partage_plugins.api.node import Gauge, NodeContext

PIDS = "WRONG_PLUGIN_PIDS"
"""The variable with the name of the file for a process id."""
_FOR_EVER = ("sleep", "600")


class MisspeltNodeHook(FpgaNode):
    @hookimpl
    def partage_adjusted(self) -> None: ...


class StartsOnce(FpgaNode):
    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        super().partage_started(context)
        (Path(context.root) / "lock").touch(exist_ok=False)


class HangsInStopping(FpgaNode):
    @hookimpl
    def partage_stopping(self) -> None:
        time.sleep(600)


class LeavesAProcess(FpgaNode):
    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        super().partage_started(context)
        _note(subprocess.Popen(_FOR_EVER, start_new_session=True).pid)


class LeavesAThread(FpgaNode):
    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        super().partage_started(context)
        threading.Thread(target=time.sleep, args=(600,), name="board-watcher").start()


class ForksAndCrashes(FpgaNode):
    """Its child stays in the process group of the process that dies."""

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        _note(subprocess.Popen(_FOR_EVER).pid)
        os.abort()


class DiscoversAnew(FpgaNode):
    _numbers = itertools.count()

    @hookimpl
    def partage_discover(self) -> FpgaPart | None:
        return FpgaPart((f"fpga{next(self._numbers)}",))


class DiscoversWrongValues(FpgaNode):
    @hookimpl
    def partage_discover(self) -> FpgaPart | None:
        return FpgaPart(("board 0",))


class SamplesTwice(FpgaNode):
    @hookimpl
    def partage_samples(self) -> Sequence[Gauge]:
        return [Gauge(name="fpga_boards", value=value) for value in (1, 2)]


class RemovesTheKnownOnly(FpgaNode):
    def __init__(self) -> None:
        self._known: set[ContainerKey] = set()

    @hookimpl
    def partage_removed(self, key: ContainerKey) -> None:
        self._known.remove(key)


def _note(pid: int) -> None:
    with Path(os.environ.get(PIDS, os.devnull)).open("a") as pids:
        pids.write(f"{pid}\n")
