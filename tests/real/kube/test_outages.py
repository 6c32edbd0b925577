"""The real API server dies, freezes, loses its store or forgets history: a follower recovers by itself."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from http import HTTPStatus

import pytest

from partage_base.kube import (
    Access,
    ApiServer,
    Backoff,
    Bookmark,
    Changed,
    Deleted,
    Event,
    Gone,
    KubeError,
    Lease,
    Listed,
    Lost,
    Meta,
    Node,
    Seen,
    ServerFailed,
    Unreachable,
    follow,
    lease_path,
    leases_path,
    node_path,
    nodes_path,
)
from rig.client.cluster import Cluster
from rig.client.wait import patient
from rig.control.plane import ControlPlane
from rig.identity.people import OUR_NAMESPACE, Identity
from rig.machine.components import stopped
from support.loops import LOOPS
from support.objects import node_body

Whose = Callable[[Identity], Access]


@pytest.fixture
def node(cluster: Cluster) -> Iterator[str]:
    cluster.nodes.create(node_body("n1"))
    yield "n1"
    cluster.nodes.delete("n1")


@pytest.fixture
def admin(control: ControlPlane, whose: Whose) -> Access:
    return whose(control.identities.admin)


def followed(server: ApiServer) -> AsyncGenerator[Seen[Node]]:
    backoff = Backoff(first_s=0.2, most_s=2, random=random.random)
    return follow(server, nodes_path(), Node, fields="metadata.name=n1", backoff=backoff)


async def label(server: ApiServer, value: str) -> None:
    await server.patch(node_path("n1"), {"metadata": {"labels": {"v": value}}}, Node)


async def until_labelled(seen: AsyncGenerator[Seen[Node]], value: str) -> list[type]:
    """Types of the events up to that label."""
    kinds: list[type] = []
    async for each in seen:
        kinds.append(type(each))
        items = each.items if isinstance(each, Listed) else (each.item,) if isinstance(each, Changed) else ()
        if any(item.metadata.labels.get("v") == value for item in items):
            return kinds
    raise AssertionError("following ended")


@pytest.mark.parametrize("loop", LOOPS)
async def test_an_api_server_killed_in_the_middle_of_a_watch_is_followed_again(
    control: ControlPlane, admin: Access, node: str, loop: str
) -> None:
    async with ApiServer(admin, user_agent="partage-test") as server, aclosing(followed(server)) as seen:
        assert isinstance(await anext(seen), Listed)
        await label(server, "1")
        await until_labelled(seen, "1")
        control.apiserver.kill()
        assert isinstance(await anext(seen), Lost)
        with pytest.raises(Unreachable) as away:
            await label(server, "2")
        assert not away.value.may_be_done
        control.apiserver.start()
        await asyncio.to_thread(control.apiserver.wait_ready)
        async with patient("its label is told"):
            await label(server, "3")
            kinds = await until_labelled(seen, "3")
        assert kinds[0] is Listed
        assert Lost not in kinds


async def test_an_api_server_whose_store_hangs_gives_up_when_it_was_told_to(
    control: ControlPlane, admin: Access
) -> None:
    async with ApiServer(admin, user_agent="partage-test", deadline_s=600) as server:
        leases = leases_path(OUR_NAMESPACE)
        await server.create(leases, Lease(metadata=Meta(name="given-up")), Lease)
        # A patch, not a create: if etcd applies it late, after the Lease is deleted, nothing changes.
        late = {"metadata": {"labels": {"late": "yes"}}}
        with stopped(control.etcd), pytest.raises(ServerFailed) as given_up:
            await server.patch(f"{leases}/given-up", late, Lease, within_s=0.5)
        await asyncio.to_thread(control.apiserver.wait_ready)
        await server.delete(f"{leases}/given-up")
        assert given_up.value.status == HTTPStatus.GATEWAY_TIMEOUT


async def test_a_frozen_api_server_ends_calls_at_their_deadline_and_watches_go_on(
    control: ControlPlane, admin: Access, node: str
) -> None:
    async with (
        ApiServer(admin, user_agent="partage-test") as server,
        ApiServer(admin, user_agent="partage-test", deadline_s=3) as hasty,
        aclosing(followed(server)) as seen,
    ):
        await anext(seen)
        await label(hasty, "before")
        await until_labelled(seen, "before")
        with stopped(control.apiserver), pytest.raises(Unreachable, match=r"no whole answer within 3 s"):
            await label(hasty, "frozen")
        async with patient("its label is told"):
            await label(server, "after")
            await until_labelled(seen, "after")


async def test_an_api_server_without_its_store_is_an_expected_error_and_passes(
    control: ControlPlane, admin: Access, node: str
) -> None:
    async with (
        ApiServer(admin, user_agent="partage-test", deadline_s=5) as server,
        aclosing(followed(server)) as seen,
    ):
        await anext(seen)
        control.etcd.kill()
        with pytest.raises(KubeError):
            await label(server, "without")
        control.etcd.start()
        await asyncio.to_thread(control.etcd.wait_ready)
        await asyncio.to_thread(control.apiserver.wait_ready)
        async with patient("its label is told"), ApiServer(admin, user_agent="partage-test") as calm:
            await label(calm, "again")
            await until_labelled(seen, "again")


async def test_history_that_is_forgotten_is_gone(control: ControlPlane, admin: Access, node: str) -> None:
    control.apiserver.restart()  # its history is lost
    async with ApiServer(admin, user_agent="partage-test") as server:
        with pytest.raises(Gone, match="410 Expired: too old resource version"):
            async for _ in server.watch(nodes_path(), Node, since="1", lasts_s=5):
                pass


async def test_a_watch_ends_as_agreed_and_the_next_goes_on_from_there(admin: Access) -> None:
    path = leases_path(OUR_NAMESPACE)

    async def told(server: ApiServer, since: str) -> list[Event[Lease]]:
        """Events of a lease, by a watch that times out; the server chooses the number of bookmarks."""
        await server.create(path, Lease(metadata=Meta(name="watched")), Lease)
        await server.delete(lease_path(OUR_NAMESPACE, "watched"))
        return [event async for event in server.watch(path, Lease, since=since, lasts_s=3)]

    async with ApiServer(admin, user_agent="partage-test") as server:
        since = (await server.list(path, Lease)).resource_version
        for _ in range(2):
            events = await told(server, since)
            assert [type(event) for event in events if not isinstance(event, Bookmark)] == [Changed, Deleted]
            assert int(events[-1].version) > int(since)
            since = events[-1].version
