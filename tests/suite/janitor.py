"""Cleans up after a run that was interrupted or killed: a separate process that waits for the run's end.

Everything that a run starts inherits the run's mark in its environment. Processes with the mark are killed, rigs whose
owner is dead are removed from the machine, and the run's folder is deleted. A run that ends normally dismisses the
janitor, and keeps its folder if something failed; the next run deletes it.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from rig.machine import slots
from rig.machine.cleanup import clean
from support.leftovers import MARK, kill_all_marked

_NAME: Final = "pt"
"""Short, like the PID after it: the folder contains sockets."""
_OURS: Final = ".of-a-test-run"


@contextmanager
def run_folder() -> Generator[tuple[Path, Callable[[], None]]]:
    """A folder for the tests' files, and a function that removes it; if this process is killed, all is cleaned up."""
    remove_abandoned()
    folder = Path(tempfile.gettempdir()) / f"{_NAME}{os.getpid():x}"
    folder.mkdir(mode=0o700)
    (folder / _OURS).touch()
    mark = os.environ[MARK] = str(uuid.uuid4())
    janitor = _start(mark, folder)
    try:
        yield folder, lambda: shutil.rmtree(folder)
    except BaseException:
        tidy(mark, folder)
        raise
    finally:
        janitor.kill()
        janitor.wait()


def remove_abandoned() -> None:
    """Remove the folders of runs that have ended."""
    for marker in Path(tempfile.gettempdir()).glob(f"{_NAME}*/{_OURS}"):
        run = int(marker.parent.name.removeprefix(_NAME), 16)
        if not Path(f"/proc/{run}").exists():
            shutil.rmtree(marker.parent, ignore_errors=True)


def _start(mark: str, folder: Path) -> subprocess.Popen[bytes]:
    argv = (sys.executable, "-P", "-m", "suite.janitor", str(os.getpid()), mark, str(folder))
    unmarked = {name: value for name, value in os.environ.items() if name != MARK}
    return subprocess.Popen(argv, env=unmarked, stdin=subprocess.DEVNULL, start_new_session=True)


def tidy(mark: str, folder: Path) -> None:
    kill_all_marked(mark)
    slots.sweep(clean)
    shutil.rmtree(folder, ignore_errors=True)


def main(run: int, mark: str, folder: Path) -> None:
    with suppress(ProcessLookupError):
        select.select([os.pidfd_open(run)], [], [])
    tidy(mark, folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
