"""Ends what a test run leaves when it is killed: programs that it started would go on and take a processor each.

Every program inherits the run's mark in its environment. A process of its own waits for the run's end, however that
comes, and kills what has the mark, also what is in a session of its own.
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
"""Fields of proc(5)'s `stat` behind the state."""
_OF_KERNEL: Final = 0x200000


def watch(run: int, mark: str) -> int:
    """Starts the process that waits for the process `run`; answers its number."""
    argv = [sys.executable, "-I", "-S", __file__, str(run), mark]
    return os.posix_spawn(sys.executable, argv, {}, setsid=True)


def kill_marked(mark: str) -> bool:
    """Whether there were any; they have let go of all that they held."""
    entry = f"{MARK}={mark}".encode()
    killed: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            if entry in _environment(process).split(b"\0"):
                killed.append(os.pidfd_open(int(process.name)))
                os.kill(int(process.name), signal.SIGKILL)
    for each in killed:
        select.select([each], [], [], _ENDS_WITHIN_S)
        os.close(each)
    return bool(killed)


def kill_all_marked(mark: str) -> None:
    """Those too that a program started meanwhile."""
    while kill_marked(mark):
        pass


def _environment(process: Path) -> bytes:
    """Once there is one: who starts a program goes on a moment before the program has its environment."""
    until = time.monotonic() + _ENDS_WITHIN_S
    while not (text := (process / "environ").read_bytes()) and time.monotonic() < until:
        if not _is_beginning(process):
            return (process / "environ").read_bytes()  # it may have come between
        time.sleep(_AGAIN_S)
    return text


def _is_beginning(process: Path) -> bool:
    """It lives and is no thread of the kernel's, and yet its environment lies nowhere."""
    state, *fields = (process / "stat").read_text().rpartition(")")[2].split()
    return state not in "ZX" and not int(fields[_FLAGS]) & _OF_KERNEL and fields[_ENVIRONMENT_ENDS] == "0"


def main(run: int, mark: str) -> None:
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(run)], [], [])
    kill_all_marked(mark)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
