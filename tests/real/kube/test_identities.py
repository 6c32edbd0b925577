"""As whom we call the real API server: certificates, tokens, a pod's service account, and credentials that rotate."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from partage_base.kube import (
    Access,
    ApiServer,
    Lease,
    LeaseSpec,
    Meta,
    Node,
    NotAllowed,
    Unreachable,
    lease_path,
    leases_path,
    node_path,
    nodes_path,
)
from partage_base.kube.access import LOOK_AFTER_REFUSAL_S, LOOK_EVERY_S
from rig.client.cluster import Cluster
from rig.client.manifests import a_node
from rig.control.plane import ControlPlane
from rig.control.settings import APISERVER_PORT
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, Bearer, Identity

INVENTORY = {"metadata": {"annotations": {"partage.dev/inventory": "{}"}}}
Whose = Callable[[Identity], Access]


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    for name in ("n1", "n2"):
        cluster.nodes.create(a_node(name))
    yield "n1"
    for name in ("n1", "n2"):
        cluster.nodes.delete(name)


@pytest.fixture
def account(cluster: Cluster, control: ControlPlane, tmp_path: Path) -> Path:
    """What kubelet would put into a pod."""
    (tmp_path / "token").write_text(cluster.token(SCHEDULER))
    (tmp_path / "ca.crt").write_bytes(control.identities.ca.read_bytes())
    return tmp_path


def in_cluster(control: ControlPlane) -> dict[str, str]:
    return {"KUBERNETES_SERVICE_HOST": str(control.addresses.host), "KUBERNETES_SERVICE_PORT": str(APISERVER_PORT)}


async def forbidden(server: ApiServer, name: str) -> NotAllowed:
    with pytest.raises(NotAllowed) as raised:
        await server.patch(node_path(name), INVENTORY, Node)
    return raised.value


async def seen(server: ApiServer, name: str) -> None:
    """By the scheduler, which may list nodes and not ask for one."""
    listing = await server.list(nodes_path(), Node)
    assert name in {item.metadata.name for item in listing.items}


async def test_an_admin_with_a_certificate_may_do_everything(control: ControlPlane, whose: Whose, node: str) -> None:
    async with ApiServer(whose(control.identities.admin), user_agent="partage-test") as server:
        listing = await server.list(nodes_path(), Node, limit=1)
        assert {item.metadata.name for item in listing.items} >= {"n1", "n2"}
        chosen = await server.list(nodes_path(), Node, fields="metadata.name=n2")
        assert [item.metadata.name for item in chosen.items] == ["n2"]


async def test_a_node_with_a_certificate_writes_itself_alone(control: ControlPlane, whose: Whose, node: str) -> None:
    async with ApiServer(whose(control.identities.node(node)), user_agent="partage-test") as server:
        patched = await server.patch(node_path(node), INVENTORY, Node)
        assert patched.metadata.annotations["partage.dev/inventory"] == "{}"
        error = await forbidden(server, "n2")
        assert error.status == 403
        assert "PATCH /api/v1/nodes/n2: 403 Forbidden: " in str(error)


async def test_a_stranger_may_nothing_and_a_false_token_is_nobody(
    control: ControlPlane, whose: Whose, cluster: Cluster, node: str
) -> None:
    async with ApiServer(whose(cluster.as_user("mallory").identity), user_agent="partage-test") as server:
        assert (await forbidden(server, node)).status == 403
    async with ApiServer(whose(Identity("false", Bearer("false"))), user_agent="partage-test") as server:
        error = await forbidden(server, node)
        assert (error.status, str(error)[-21:]) == (401, "renew the credentials")


async def test_a_pod_calls_with_its_service_account(control: ControlPlane, account: Path, node: str) -> None:
    access = Access.find(None, environ=in_cluster(control), account=account)
    async with ApiServer(access, user_agent="partage-test") as server:
        await seen(server, node)
        path = lease_path(OUR_NAMESPACE, node)
        lease = Lease(metadata=Meta(name=node), spec=LeaseSpec(holder_identity=node, lease_duration_seconds=40))
        made = await server.create(leases_path(OUR_NAMESPACE), lease, Lease)
        assert await server.get(path, Lease) == made
        assert 'cannot patch resource "nodes"' in str(await forbidden(server, node))


async def test_a_token_that_rotates_is_followed_and_one_that_is_revoked_is_read_anew(
    control: ControlPlane, cluster: Cluster, account: Path, node: str
) -> None:
    now = [0.0]
    access = Access.find(None, environ=in_cluster(control), account=account, clock=lambda: now[0])
    async with ApiServer(access, user_agent="partage-test") as server:
        before = (await access.current()).authorization
        await asyncio.to_thread(_replace, account / "token", cluster.token(SCHEDULER))
        now[0] += LOOK_EVERY_S
        await seen(server, node)
        assert (await access.current()).authorization != before
        await asyncio.to_thread(_replace, account / "token", "revoked")
        now[0] += LOOK_EVERY_S
        with pytest.raises(NotAllowed):
            await seen(server, node)
        await asyncio.to_thread(_replace, account / "token", cluster.token(SCHEDULER))
        now[0] += LOOK_AFTER_REFUSAL_S
        await seen(server, node)


def _replace(path: Path, content: str) -> None:
    new = path.with_suffix(".new")
    new.write_text(content)
    new.replace(path)


async def test_an_api_server_of_another_cluster_is_not_believed(
    control: ControlPlane, account: Path, node: str
) -> None:
    (account / "ca.crt").write_bytes(control.identities.etcd_ca.read_bytes())
    access = Access.find(None, environ=in_cluster(control), account=account)
    async with ApiServer(access, user_agent="partage-test") as server:
        with pytest.raises(Unreachable, match=r"the certificate of .* does not hold") as raised:
            await server.get(node_path(node), dict[str, Any])
        assert not raised.value.may_be_done
