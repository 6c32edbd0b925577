"""Starts one scheduler for one turn on a backlog, and ends it afterwards."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path

from bench.scheduling.racing import Processes, Race, raced, waiting
from partage_base.kube import Access, ApiServer
from rig.client.cluster import Cluster
from rig.control.plane import ControlPlane
from rig.identity.people import SCHEDULER
from rig.machine.components import Component
from support.scheduler_process import new_key

Started = Callable[[], AbstractContextManager[int]]
"""Starts a scheduler, yields its process id, and ends it."""


def joined(control: ControlPlane, root: Path) -> tuple[Path, Access]:
    """The scheduler's kubeconfig, with a key that it signs with below `root`, and the administrator's access."""
    new_key(root)
    with closing(Cluster(control)) as cluster:
        return cluster.as_account(SCHEDULER).kubectl.kubeconfig, Access.find(cluster.kubectl.kubeconfig)


async def turn(server: ApiServer, started: Started, named: str, most: int, others: Processes) -> Sequence[Race]:
    """Runs until this many more of the pods with this name prefix are bound, or all.

    Empty if none are left: a small backlog may be bound completely before its first turn is known to be over.
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
    """The log of our daemon with that root."""
    return root / "scheduler.log"


@contextmanager
def component(scheduler: Component) -> Generator[int]:
    scheduler.start()
    try:
        yield scheduler.pid
    finally:
        scheduler.stop()
