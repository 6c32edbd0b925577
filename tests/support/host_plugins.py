"""Node plugins that a plugin host's child imports by path; the container's name selects their behaviour."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from partage_plugins import Refused, hookimpl
from partage_plugins.api import Adjustment, Container, Granted
from partage_plugins.api.node import NodeContext
from support.sides import THING


class Obedient:
    """Owns the kind `thing`, and behaves as the container's name says."""

    @hookimpl
    def partage_kind(self) -> object:
        return THING

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        self._root = Path(context.root)

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        getattr(self, f"_{container.name.replace('-', '_')}", _nothing)()
        return Adjustment(env={"THINGS": ",".join(thing.id for thing in granted.of(THING)), "PID": str(os.getpid())})

    @hookimpl
    def partage_removed(self, key: str) -> None:
        with (self._root / "removed").open("a") as file:
            file.write(f"{key}\n")

    @hookimpl
    def partage_stopping(self) -> None:
        (self._root / "stopped").write_text("yes")

    def _refuse(self) -> None:
        raise Refused("this one cannot have it")

    def _raises(self) -> None:
        raise ValueError("broken inside")

    def _exits(self) -> None:
        sys.exit(7)

    def _segfault(self) -> None:
        ctypes.string_at(0)

    def _segfault_once(self) -> None:
        mark = self._root / "crashed"
        if not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGSEGV)

    def _hang(self) -> None:
        time.sleep(600)

    def _hang_ignoring_signals(self) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))
        while True:
            pass

    def _eat(self) -> None:
        hoard = [bytearray(1 << 24) for _ in range(1 << 10)]
        raise AssertionError(len(hoard))

    def _print(self) -> None:
        print("to stdout")  # noqa: T201  what a careless plugin does

    def _orphan(self) -> None:
        child = subprocess.Popen(["sleep", "600"])
        (self._root / "orphan").write_text(str(child.pid))

    def _die_soon(self) -> None:
        threading.Timer(0.05, os._exit, (9,)).start()

    def _close_fds(self) -> None:
        os.closerange(3, 64)

    def _babble(self) -> None:
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, b"\0\0\0\5hello")
            except OSError:
                continue

    def _slow(self) -> None:
        time.sleep(0.3)


class CrashesAtStart:
    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        del context
        os.abort()


class HangsAtImport:
    def __init__(self) -> None:
        time.sleep(600)


def _nothing() -> None: ...
