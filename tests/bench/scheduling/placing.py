"""Lets one scheduler work at a backlog for one turn: it is started for that and ended after it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from bench.scheduling.racing import Processes, Race, raced, waiting
from partage_base.kube import ApiServer
from rig.machine.components import Component

Started = Callable[[], AbstractContextManager[int]]
"""Starts a scheduler, tells its process id, and ends it."""


async def turn(server: ApiServer, started: Started, named: str, most: int, others: Processes) -> Sequence[Race]:
    """Until so many more of the pods whose names begin so are bound, or all.

    No race where none are left: a small backlog may be bound as a whole before its first turn is known to be over.
    """
    backlog = await waiting(server, named)
    if not backlog.names:
        return ()
    with started() as pid:
        return (await raced(server, backlog, min(most, len(backlog.names)), pid, others),)


@contextmanager
def daemon(kubeconfig: Path, root: Path, *flags: str, variables: Mapping[str, str] = {}) -> Generator[int]:
    log = log_in(root)
    command = [sys.executable, "-m", "partage_scheduler", "--kubeconfig", str(kubeconfig), "--root", str(root)]
    with log.open("wb") as file:
        words = [*command, "--silent-after-s", "3600", *flags]
        process = subprocess.Popen(words, stderr=file, stdout=file, env={**os.environ, **variables})
    try:
        yield process.pid
    except BaseException:
        sys.stderr.write(log.read_text()[-4000:])
        raise
    finally:
        process.terminate()
        process.wait(30)


def log_in(root: Path) -> Path:
    """The log of a daemon of ours with that root."""
    return root / "scheduler.log"


@contextmanager
def component(scheduler: Component) -> Generator[int]:
    scheduler.start()
    try:
        yield scheduler.pid
    finally:
        scheduler.stop()
