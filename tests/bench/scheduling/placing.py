"""Starts one scheduler for one turn on a backlog, and ends it afterwards."""

from __future__ import annotations

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
from support.scheduler_process import SchedulerProcess, new_key

Started = Callable[[], AbstractContextManager[SchedulerProcess | Component]]
"""Starts a scheduler, and ends it."""


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
    with started() as scheduler:
        return (await raced(server, backlog, min(most, len(backlog.names)), scheduler.pid, others),)


@contextmanager
def daemon(
    kubeconfig: Path, root: Path, *flags: str, variables: Mapping[str, str] | None = None
) -> Generator[SchedulerProcess]:
    process = SchedulerProcess(kubeconfig, root, "--silent-after-s", "3600", *flags, env=variables)
    process.log.unlink(missing_ok=True)
    process.start()
    try:
        yield process
    except BaseException:
        sys.stderr.write(process.said[-4000:])
        raise
    finally:
        process.stop()


@contextmanager
def component(scheduler: Component) -> Generator[Component]:
    scheduler.start()
    try:
        yield scheduler
    finally:
        scheduler.stop()
