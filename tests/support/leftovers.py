"""Ends what a test run leaves when it is killed: programs that it started would go on and take a processor each.

Every program inherits the run's mark in its environment. A process of its own waits for the run's end, however that
comes, and kills what has the mark, also what is in a session of its own.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

MARK: Final = "TEST_RUN_MARK"
_ENDS_WITHIN_S: Final = 10.0


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
            if entry in (process / "environ").read_bytes().split(b"\0"):
                killed.append(os.pidfd_open(int(process.name)))
                os.kill(int(process.name), signal.SIGKILL)
    for each in killed:
        select.select([each], [], [], _ENDS_WITHIN_S)
        os.close(each)
    return bool(killed)


def main(run: int, mark: str) -> None:
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(run)], [], [])
    # Again for what a program started meanwhile.
    while kill_marked(mark):
        pass


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
