"""A control plane without nodes, of these tests' own: they kill it, freeze it and cut it off."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from partage_base.kube import Access
from rig.client.cluster import Cluster
from rig.client.resources import LEASES
from rig.control.plane import ControlPlane
from rig.identity.people import OUR_NAMESPACE, Identity
from rig.rig import Rig, RigSettings, running

Whose = Callable[[Identity], Access]


@pytest.fixture(scope="package")
def nodeless() -> Iterator[Rig]:
    with running(RigSettings(nodes={}), say=print) as rig:
        yield rig


@pytest.fixture
def rig(nodeless: Rig) -> Iterator[Rig]:
    """As every rig, its logs are part of the report of a test that fails."""
    yield nodeless
    nodeless.cluster.delete_made(grace_s=0)
    nodeless.cluster.api.delete(LEASES.at(OUR_NAMESPACE))
    nodeless.cluster.close()


@pytest.fixture
def control(rig: Rig) -> ControlPlane:
    return rig.control


@pytest.fixture
def cluster(rig: Rig) -> Cluster:
    return rig.cluster


@pytest.fixture
def whose(control: ControlPlane) -> Whose:
    """Access as an identity, by a kubeconfig of its own."""

    def access(identity: Identity) -> Access:
        path: Path = control.identities.kubeconfig(identity, control.server)
        return Access.find(path)

    return access
