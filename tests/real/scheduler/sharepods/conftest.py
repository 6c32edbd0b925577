"""The cluster serves the SharePod kind, and the controller runs beside our scheduler."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from real.scheduler.conftest import QUICK, Scheduler
from rig.client.cluster import Cluster
from rig.control.plane import ControlPlane
from rig.identity.people import SHAREPODS
from support.scheduler_process import SchedulerProcess
from support.sharepods import Stage, installed, uninstalled


@pytest.fixture(scope="package", autouse=True)
def served(control: ControlPlane) -> Iterator[None]:
    cluster = Cluster(control)
    installed(cluster)
    cluster.close()
    yield
    uninstalled(cluster)
    cluster.close()


@pytest.fixture
def bare(bare: Cluster) -> Iterator[Cluster]:
    """The bare cluster, without a SharePod."""
    yield bare
    bare.kubectl.run("delete", "sharepods", "--all", "--all-namespaces", "--wait=false")
    for pod in bare.pods.list():
        pod.delete_and_wait(0)


@pytest.fixture
def scheduler(scheduler: Scheduler) -> Scheduler:
    scheduler.start("--silent-after-s", "3600")
    return scheduler


@pytest.fixture
def controller(bare: Cluster, control: ControlPlane, tmp_path: Path) -> Iterator[SchedulerProcess]:
    identity = bare.as_account(SHAREPODS).identity
    kubeconfig = control.identities.kubeconfig(identity, control.server)
    made = SchedulerProcess(kubeconfig, tmp_path, *QUICK, name="sharepods", module="partage_scheduler.sharepods")
    try:
        yield made
    finally:
        made.kill()
        sys.stdout.write(made.said[-6000:])


@pytest.fixture
def stage(bare: Cluster, node: Callable[[str], None], scheduler: Scheduler, controller: SchedulerProcess) -> Stage:
    """Node n1 with two cards; all components run."""
    node("n1")
    controller.start()
    return Stage(bare)
