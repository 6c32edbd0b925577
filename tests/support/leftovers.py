"""Kills programs left over by a test run that was killed, which would each keep a processor busy.

Every program inherits the run's mark in its environment. A watcher process waits for the end of the run, even by a
kill, and kills every process with the mark, including those in other sessions.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "TEST_RUN_MARK"
_ENDS_WITHIN_S: Final = 10.0
_AGAIN_S: Final = 0.001
_FLAGS, _ENVIRONMENT_ENDS = 5, 47
"""Indices of proc(5)'s `stat` fields after the state."""
_OF_KERNEL: Final = 0x200000


def watch(run: int, mark: str) -> int:
    """Start the watcher of the process `run`; returns its PID."""
    argv = [sys.executable, "-I", "-S", __file__, str(run), mark]
    return os.posix_spawn(sys.executable, argv, {}, setsid=True)


def kill_marked(mark: str) -> bool:
    """Kill all processes with the mark and wait for them; returns whether there were any."""
    entry = f"{MARK}={mark}".encode()
    killed: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # the process has ended
            if entry in _environment(process).split(b"\0"):
                killed.append(os.pidfd_open(int(process.name)))
                os.kill(int(process.name), signal.SIGKILL)
    for each in killed:
        select.select([each], [], [], _ENDS_WITHIN_S)
        os.close(each)
    return bool(killed)


def kill_all_marked(mark: str) -> None:
    """Repeat until there are none, because a marked process may start others meanwhile."""
    while kill_marked(mark):
        pass


def _environment(process: Path) -> bytes:
    """A process's environment, waiting for it: between spawn and exec it is empty for a moment."""
    until = time.monotonic() + _ENDS_WITHIN_S
    while not (text := (process / "environ").read_bytes()) and time.monotonic() < until:
        if not _is_beginning(process):
            return (process / "environ").read_bytes()  # it may have appeared in between
        time.sleep(_AGAIN_S)
    return text


def _is_beginning(process: Path) -> bool:
    """Whether a living user process has no environment yet."""
    state, *fields = (process / "stat").read_text().rpartition(")")[2].split()
    return state not in "ZX" and not int(fields[_FLAGS]) & _OF_KERNEL and fields[_ENVIRONMENT_ENDS] == "0"


def main(run: int, mark: str) -> None:
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(run)], [], [])
    kill_all_marked(mark)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
