"""A control plane for these tests alone, with the installer's account and policies as shipped, in force.

Each installer uses a token that names its node, as its pod would.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Generator, Iterator
from pathlib import Path

import pytest

from partage_base.kube import Access
from partage_cli.rollout.node_state import INSTALLED
from real.permissions.objects import a_lease
from rig.client.cluster import Cluster
from rig.client.resources import LEASES
from rig.client.wait import until
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.errors import Refused
from rig.identity.people import INSTALLER, OUR_NAMESPACE, Bearer, Identity
from rig.identity.permissions import FOLDER
from support.rollout_stage import QUICK, Mortal, RolloutStage, a_made_up_node, name_of

NODES_OF_THE_FLEET = 20
NAMES = tuple(name_of(number) for number in range(NODES_OF_THE_FLEET))


@pytest.fixture(scope="package")
def control() -> Generator[ControlPlane]:
    with control_plane(ControlSettings()) as control:
        yield control


@pytest.fixture(scope="package")
def admin(control: ControlPlane) -> Iterator[Cluster]:
    cluster = Cluster(control)
    for file in ("admission.yaml", "rbac.yaml"):
        cluster.kubectl.run("apply", "-f", str(FOLDER / "installer" / file))
    for name in NAMES:
        cluster.nodes.create(a_made_up_node(name))
    until("the policies are in force", lambda: _why_not_in_force(cluster))
    cluster.nodes.annotate("n00", {INSTALLED: None})  # it may have been written before
    yield cluster
    cluster.close()


@pytest.fixture
def cluster(admin: Cluster) -> Iterator[Cluster]:
    """A cluster in which no node reports a version and nobody holds the Lease."""
    yield admin
    for name in NAMES:
        admin.api.patch(f"/api/v1/nodes/{name}", a_made_up_node(name))
        admin.nodes.annotate(name, {INSTALLED: None})
    admin.api.delete(LEASES.at(OUR_NAMESPACE))
    admin.close()


@pytest.fixture
async def stage(cluster: Cluster, control: ControlPlane, tmp_path: Path) -> AsyncIterator[RolloutStage]:
    def server_of(name: str) -> Mortal:
        token = cluster.token(INSTALLER, cluster.nodes.get(name))
        access = control.identities.kubeconfig(Identity(INSTALLER.user, Bearer(token)), control.server)
        return Mortal(Access.find(access))

    stage = RolloutStage(tmp_path, server_of, QUICK)
    yield stage
    await stage.close()


def _why_not_in_force(cluster: Cluster) -> str | None:
    """The API server takes a moment to notice a policy. Without a node in its token, every write must be denied."""
    no_node = cluster.as_account(INSTALLER)
    writes: tuple[Callable[[], object], ...] = (
        lambda: no_node.nodes.annotate("n00", {INSTALLED: "premature"}),
        lambda: no_node.api.create(LEASES.at(OUR_NAMESPACE), a_lease("partage-rollout-0"), {"dryRun": "All"}),
    )
    for write in writes:
        try:
            write()
        except Refused as refused:
            if "does not say which node" not in refused.message:
                return str(refused)
        else:
            return "nothing is denied"
    return None
