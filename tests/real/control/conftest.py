"""A control plane without nodes: pods are created, refused and bound, and never run.

It is these tests' own, since some of them kill parts of it.
"""

from __future__ import annotations

from collections.abc import Generator

import pytest

from rig.client.cluster import Cluster
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings


@pytest.fixture(scope="package")
def control() -> Generator[ControlPlane]:
    with control_plane(ControlSettings()) as control:
        yield control


@pytest.fixture
def cluster(control: ControlPlane) -> Generator[Cluster]:
    cluster = Cluster(control)
    yield cluster
    cluster.delete_made(grace_s=0)
    cluster.close()
