"""The cluster serves the SharePod kind, and the controller runs beside our scheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from real.scheduler.conftest import QUICK
from rig.client.cluster import Cluster
from rig.control.plane import ControlPlane
from support.scheduler_process import SchedulerProcess, shown
from support.sharepods import Stage, controller_of, installed, uninstalled


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
def scheduler(scheduler: SchedulerProcess) -> SchedulerProcess:
    scheduler.start("--silent-after-s", "3600")
    return scheduler


@pytest.fixture
def controller(bare: Cluster, tmp_path: Path) -> Iterator[SchedulerProcess]:
    with shown(controller_of(bare, tmp_path, *QUICK)) as made:
        yield made


@pytest.fixture
def stage(
    bare: Cluster, node: Callable[[str], None], scheduler: SchedulerProcess, controller: SchedulerProcess
) -> Stage:
    """Node n1 with two cards; all components run."""
    node("n1")
    controller.start()
    return Stage(bare)
