"""An API server with garbage collection, our scheduler and the controller of SharePods; nodes are made up.

Nobody looks for kubelets, so nodes stay as they are made, and pods run when a test says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from real.scheduler.conftest import QUICK, Scheduler, node, of
from real.sharepods.stage import SHAREPODS_PATH, Stage
from rig.client.cluster import Cluster
from rig.client.resources import LEASES
from rig.client.wait import until
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, SHAREPODS
from rig.identity.permissions import FOLDER
from support.scheduler_process import SchedulerProcess

__all__ = ["node"]

COLLECTING = (
    "serviceaccount-controller",
    "root-ca-certificate-publisher-controller",
    "clusterrole-aggregation-controller",
    "garbage-collector-controller",
    "namespace-controller",
)
SETTINGS = ControlSettings(
    kube_scheduler=False,
    apiserver_flags={
        "enable-admission-plugins": "NodeRestriction,OwnerReferencesPermissionEnforcement",
        "disable-admission-plugins": "TaintNodesByCondition",
    },
    controller_manager_flags={"controllers": ",".join(COLLECTING)},
)


@pytest.fixture(scope="package")
def control() -> Generator[ControlPlane]:
    with control_plane(SETTINGS) as control:
        cluster = Cluster(control)
        for file in ("crd", "admission", "rbac"):
            cluster.kubectl.run("apply", "-f", str(FOLDER / f"sharepods/{file}.yaml"))
        cluster.kubectl.run("wait", "--for=condition=Established", "crd/sharepods.kubeshare.nthu", "--timeout=60s")
        until("SharePods are served", lambda: _why_not_served(cluster))
        cluster.close()
        yield control


@pytest.fixture
def bare(control: ControlPlane) -> Iterator[Cluster]:
    """Without a node and without a SharePod."""
    cluster = Cluster(control)
    yield cluster
    cluster.kubectl.run("delete", "sharepods", "--all", "--all-namespaces", "--wait=false")
    for pod in cluster.pods.list():
        pod.delete_and_wait(0)
    for name in cluster.nodes.names():
        cluster.nodes.delete(name)
        cluster.api.delete(LEASES.at(OUR_NAMESPACE, name))
    cluster.close()


@pytest.fixture
def scheduler(bare: Cluster, control: ControlPlane, tmp_path: Path) -> Iterator[Scheduler]:
    with of(bare, control, tmp_path) as made:
        made.start("--silent-after-s", "3600")
        yield made


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
    """Node n1 with two cards; everything runs."""
    node("n1")
    controller.start()
    return Stage(bare)


def _why_not_served(cluster: Cluster) -> str | None:
    try:
        cluster.api.get(SHAREPODS_PATH.at())
    except Refused as refused:
        return str(refused)
    return None
