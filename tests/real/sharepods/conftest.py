"""An API server with garbage collection, our scheduler and the controller of SharePods; nodes are made up.

Nobody looks for kubelets, so nodes stay as they are made, and pods run when a test says so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from partage_plugins.codecs import encode_inventory
from partage_plugins.vocabulary import GPU, GpuPart, Inventory, Ready
from partage_plugins.vocabulary.keys import INVENTORY
from real.scheduler.conftest import QUICK, Scheduler, beats, of
from real.sharepods.stage import Stage, installed
from rig.client.cluster import Cluster
from rig.client.manifests import a_node
from rig.client.resources import LEASES
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.identity.people import OUR_NAMESPACE, SHAREPODS
from support.gpu_fleet import card
from support.scheduler_process import SchedulerProcess

CARDS = 2

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
        installed(cluster)
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
    cluster.api.delete(LEASES.at(OUR_NAMESPACE))
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
def node(bare: Cluster) -> Callable[[str], None]:
    """Makes one with two cards, which are called as NVIDIA calls them."""

    def make(name: str) -> None:
        part = GpuPart(driver="580", cuda="13.0", cards=tuple(card(f"GPU-{name}-{place}") for place in range(CARDS)))
        inventory = Inventory(kinds={GPU.name: part}, ready=Ready(crishim=True, broker=True))
        bare.nodes.create(a_node(name, annotations={INVENTORY: encode_inventory(inventory).decode()}))
        beats(bare, name)

    return make


@pytest.fixture
def stage(bare: Cluster, node: Callable[[str], None], scheduler: Scheduler, controller: SchedulerProcess) -> Stage:
    """Node n1 with two cards; everything runs."""
    node("n1")
    controller.start()
    return Stage(bare)
