"""An API server without nodes and with our scheduler alone; made-up nodes have cards and heartbeats.

No controller watches kubelets, so nodes stay as they are made, and pods run when a test sets that. The garbage
collector runs.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from rig.client.cluster import Cluster
from rig.client.resources import LEASES
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.identity.people import OUR_NAMESPACE, SCHEDULER
from support.gpu_fleet import card
from support.objects import lease_body, node_body, of_cards
from support.scheduler_process import SchedulerProcess, new_key, shown

CARDS = 2
SETTINGS = ControlSettings(
    kube_scheduler=False,
    apiserver_flags={
        "enable-admission-plugins": "NodeRestriction,OwnerReferencesPermissionEnforcement",
        "disable-admission-plugins": "TaintNodesByCondition",
    },
    controller_manager_flags={
        "controllers": "serviceaccount-controller,root-ca-certificate-publisher-controller,"
        "clusterrole-aggregation-controller,garbage-collector-controller,namespace-controller"
    },
)
QUICK = ("--lease-s", "3", "--renew-s", "2", "--retry-s", "0.5")
"""Limits the wait for a leader that was killed."""


@pytest.fixture(scope="package")
def control() -> Generator[ControlPlane]:
    with control_plane(SETTINGS) as control:
        yield control


@pytest.fixture
def bare(control: ControlPlane) -> Iterator[Cluster]:
    """A cluster without a node, a leader or a heartbeat."""
    cluster = Cluster(control)
    yield cluster
    cluster.delete_made(grace_s=0)
    for name in cluster.nodes.names():
        cluster.nodes.delete(name)
    cluster.api.delete(LEASES.at(OUR_NAMESPACE))
    cluster.close()


@pytest.fixture
def scheduler(bare: Cluster, tmp_path: Path) -> Iterator[SchedulerProcess]:
    with of(bare, tmp_path) as made:
        yield made


@contextmanager
def of(cluster: Cluster, root: Path) -> Generator[SchedulerProcess]:
    root.mkdir(exist_ok=True)
    new_key(root)
    with shown(SchedulerProcess(cluster.as_account(SCHEDULER).kubectl.kubeconfig, root, *QUICK)) as made:
        yield made


@pytest.fixture
def node(bare: Cluster) -> Callable[[str], None]:
    """Create a node with two cards."""
    return partial(with_cards, bare)


def with_cards(cluster: Cluster, name: str) -> None:
    """A made-up node with two cards by NVIDIA's names, whose advertiser sends one heartbeat."""
    cluster.nodes.create(node_body(name, of_cards(card(f"GPU-{name}-{place}") for place in range(CARDS))))
    beats(cluster, name)


def beats(cluster: Cluster, name: str) -> None:
    """Send the node's first heartbeat."""
    cluster.api.create(LEASES.at(OUR_NAMESPACE), lease_body(name))
