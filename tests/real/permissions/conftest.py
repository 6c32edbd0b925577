"""A control plane with two made-up nodes and the advertiser's permissions as shipped, in force."""

from __future__ import annotations

from collections.abc import Generator, Iterator

import pytest

from partage_plugins.api.keys import INVENTORY
from real.permissions.objects import NODES_OF_THE_TEST, a_lease, an_event, an_own_node
from rig.client.cluster import Cluster
from rig.client.policies import why_not_denied
from rig.client.resources import EVENTS, LEASES, Json
from rig.client.wait import until
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.identity.people import ADVERTISER, OUR_NAMESPACE

SETTINGS = ControlSettings(controller_manager_flags={"resource-quota-sync-period": "5s"})
"""Counts new kinds soon; the default is five minutes."""


@pytest.fixture(scope="package")
def control() -> Generator[ControlPlane]:
    with control_plane(SETTINGS) as control:
        yield control


@pytest.fixture(scope="package")
def admin(control: ControlPlane) -> Iterator[Cluster]:
    cluster = Cluster(control)
    for name in NODES_OF_THE_TEST:
        cluster.nodes.create(an_own_node(name))
    cluster.api.create(LEASES.at(OUR_NAMESPACE), a_lease("of-another"))
    of_kubelet = {"source": {"component": "kubelet"}, "reportingComponent": "kubelet", "reportingInstance": "n1"}
    cluster.api.create(EVENTS.at("default"), an_event("n1", metadata={"name": "of-kubelet"}, **of_kubelet))
    cluster.api.create(EVENTS.at("default"), an_event("n1", metadata={"name": "its-own"}))
    until("the policies are in force", lambda: _why_not_in_force(cluster))
    cluster.nodes.annotate("n1", {INVENTORY: None})  # of an attempt before they were
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(admin: Cluster) -> Iterator[Cluster]:
    yield admin
    admin.delete_made(grace_s=0)
    admin.close()


@pytest.fixture
def n1(cluster: Cluster) -> Json:
    return cluster.nodes.get("n1")


@pytest.fixture
def advertiser(cluster: Cluster, n1: Json) -> Cluster:
    """The advertiser of n1."""
    return cluster.as_account(ADVERTISER, n1)


def _why_not_in_force(cluster: Cluster) -> str | None:
    """Without a node in its token, every write must be denied."""
    nobody = cluster.as_account(ADVERTISER)
    words, dry = "does not say which node", {"dryRun": "All"}
    return why_not_denied(
        (words, lambda: nobody.nodes.annotate("n1", {INVENTORY: "premature"})),
        (words, lambda: nobody.api.create(LEASES.at(OUR_NAMESPACE), a_lease("n1"), dry)),
        (words, lambda: nobody.api.create(EVENTS.at("default"), an_event("n1"), dry)),
    )
