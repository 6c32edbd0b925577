"""Runs one test many times beside a load on every core, to find out how often and why it fails."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from suite.janitor import run_folder
from suite.pool import Done, Job, Pool

_LOAD: Final = "import os; parent = os.getppid()\nwhile os.getppid() == parent: sum(range(100_000))"
"""Ends when its parent does, for any reason."""


def steady(test: str, times: int, logs: Path) -> int:
    """Print each run, with the folder of its logs if it failed; returns the exit status: 2 if no test was run."""
    shutil.rmtree(logs / "steady", ignore_errors=True)
    failed = 0
    with run_folder() as (temporary, remove), _load():
        for number in range(1, times + 1):
            done = _once(test, logs / "steady" / str(number), logs, temporary)
            if not done.tests:
                sys.stderr.write(done.output)
                return 2
            failed += bool(done.failures)
        if not failed:
            remove()
    sys.stdout.write(f"{test}: failed {failed} of {times} times beside a load of every core\n")
    return int(bool(failed))


def _once(test: str, folder: Path, logs: Path, temporary: Path) -> Done:
    started = time.time()
    argv = (sys.executable, "-m", "pytest", "-q", "-p", "suite.record", test)
    job = Job(test, argv, waits=True, is_pytest=True)
    (done,) = Pool(folder, temporary, computing=1, waiting=1).run([job], lambda _: None)
    if done.failures:
        _keep_rig_logs(logs, folder, started)
        said = f"failed, logs in {folder}: {'; '.join(done.failures)}"
    else:
        shutil.rmtree(folder)
        said = "passed"
    sys.stdout.write(f"run {folder.name}, {done.seconds:.1f} s: {said}\n")
    sys.stdout.flush()
    return done


@contextmanager
def _load() -> Generator[None]:
    load = [subprocess.Popen([sys.executable, "-ISc", _LOAD]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for each in load:
            each.kill()
            each.wait()


def _keep_rig_logs(logs: Path, folder: Path, started: float) -> None:
    for rig in logs.glob("rig-logs*"):
        if rig.stat().st_mtime >= started:
            shutil.copytree(rig, folder / rig.name)
