"""The page on a real API server, with the account as shipped: it reads all that it shows, and can write nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from typing import Final

import aiohttp
import pytest

from partage_base.daemon.life import Tasks
from partage_base.kube import Access, ApiServer
from partage_plugins.api.keys import GPU_MILLI
from partage_ui.board import Board
from partage_ui.cluster import ClusterReader, nothing_known
from partage_ui.reviews import ClusterDoor
from partage_ui.service import opened
from real.permissions.objects import a_lease, an_event
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import EVENTS, LEASES, SERVICE_ACCOUNTS
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, TEAM, ServiceAccount
from rig.identity.permissions import FOLDER
from support.kube import until as until_it

ACCOUNT: Final = ServiceAccount(OUR_NAMESPACE, "partage-ui")
VIEWER: Final = ServiceAccount(TEAM, "viewer")
RBAC: Final = ("-f", str(FOLDER / "ui/rbac.yaml"))


@pytest.fixture
def page(cluster: Cluster) -> Iterator[Cluster]:
    cluster.kubectl.run("apply", *RBAC)
    cluster.api.create(SERVICE_ACCOUNTS.at(TEAM), {"metadata": {"name": VIEWER.name}})
    cluster.kubectl.run(
        "create", "rolebinding", "viewer", "-n", TEAM, "--clusterrole=view", f"--serviceaccount={TEAM}:viewer"
    )
    account = cluster.as_account(ACCOUNT)
    until("its rights are in force", lambda: refusal_of(lambda: account.kubectl.run("get", "pods", "-A")))
    yield account
    cluster.kubectl.run("delete", *RBAC)
    cluster.kubectl.run("delete", "rolebinding,serviceaccount", "viewer", "-n", TEAM)


def refusal_of(attempt: Callable[[], object]) -> str | None:
    try:
        attempt()
    except Refused as refused:
        return refused.message
    except Exception as error:  # noqa: BLE001 - kubectl's own
        return str(error)
    return None


def test_it_can_write_nothing(page: Cluster, cluster: Cluster) -> None:
    writes: tuple[Callable[[], object], ...] = (
        lambda: page.nodes.annotate("n1", {"partage.dev/inventory": "{}"}),
        lambda: page.api.create(LEASES.at(OUR_NAMESPACE), a_lease("n1")),
        lambda: page.api.create(EVENTS.at("default"), an_event("n1")),
        lambda: page.pods.create(TEAM, a_pod("mine")),
    )
    for write in writes:
        with pytest.raises(Refused) as refused:
            write()
        assert refused.value.status == 403


def test_people_sign_in_by_their_tokens_and_see_the_namespaces_whose_pods_they_may_list(
    page: Cluster, cluster: Cluster
) -> None:
    asks = {"resources": {"limits": {GPU_MILLI: "500"}, "requests": {GPU_MILLI: "500"}}}
    for namespace in (TEAM, OUR_NAMESPACE):
        pod = a_pod(f"waits-in-{namespace}", spec={"schedulerName": "partage-scheduler"})
        pod["spec"]["containers"][0] |= asks
        cluster.pods.create(namespace, pod)
    seen = asyncio.run(shown(page, cluster.token(VIEWER)))
    assert f"waits-in-{TEAM}" in seen
    assert f"waits-in-{OUR_NAMESPACE}" not in seen
    assert "not known for sure" not in seen


async def shown(page: Cluster, token: str) -> str:
    access = await asyncio.to_thread(Access.find, page.kubectl.kubeconfig)
    failed: list[Exception] = []
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ApiServer(access, user_agent="test", connections=16))
        board, tasks = Board(nothing_known()), Tasks(failed.append)
        site = await opened(board, ClusterDoor(server), "127.0.0.1:0", stack, session_s=3600)
        ClusterReader(server, board, namespace=OUR_NAMESPACE, scheduler="partage-scheduler", asks=True).start(tasks)
        session = await stack.enter_async_context(aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)))
        address = f"http://127.0.0.1:{site.port}"
        async with session.post(f"{address}/login", data={"token": "of-nobody"}) as answer:
            assert answer.status == 401
        await until_it(lambda: not board.facts.troubles)
        async with session.post(f"{address}/login", data={"token": token}) as answer:
            seen = await answer.text()
            assert (answer.status, answer.url.path) == (200, "/waiting")
        await asyncio.wait(tasks.cancel())
    assert not failed
    return seen
