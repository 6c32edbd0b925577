"""A control plane without nodes or controllers, for these tests alone: they kill it, freeze it and cut it off."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator

import pytest

from partage_base.kube import Access
from rig.client.cluster import Cluster
from rig.client.resources import LEASES
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.identity.people import OUR_NAMESPACE, Identity

Whose = Callable[[Identity], Access]


@pytest.fixture(scope="package")
def control() -> Generator[ControlPlane]:
    with control_plane(ControlSettings(controller_manager=False, kube_scheduler=False)) as control:
        yield control


@pytest.fixture
def cluster(control: ControlPlane) -> Iterator[Cluster]:
    made = Cluster(control)
    yield made
    made.api.delete(LEASES.at(OUR_NAMESPACE))
    made.close()


@pytest.fixture
def whose(control: ControlPlane) -> Whose:
    """Access as an identity, by a kubeconfig of its own."""
    return lambda identity: Access.find(control.identities.kubeconfig(identity, control.server))
