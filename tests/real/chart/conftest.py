"""A control plane with made-up nodes, in which nothing of partage is installed."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from rig.client.cluster import Cluster
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from support.chart import Helm, helm_in

SETTINGS = ControlSettings(
    kube_scheduler=False,
    partage=False,
    apiserver_flags={
        "disable-admission-plugins": "TaintNodesByCondition",
        "admission-control-config-file": str(Path(__file__).parent / "limits.yaml"),
    },
    controller_manager_flags={"controllers": "*,-node-lifecycle-controller"},
)
"""No controller watches kubelets, so that nodes stay as made.

Otherwise this is a cluster that restricts who runs pods of the highest priority.
"""


@pytest.fixture(scope="package")
def control() -> Generator[ControlPlane]:
    with control_plane(SETTINGS) as control:
        yield control


@pytest.fixture
def cluster(control: ControlPlane) -> Iterator[Cluster]:
    made = Cluster(control)
    yield made
    made.delete_made(grace_s=0)
    made.close()


@pytest.fixture
def helm(cluster: Cluster, tmp_path: Path) -> Helm:
    return helm_in(tmp_path, cluster.kubectl.kubeconfig)
