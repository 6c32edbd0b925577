"""The real API server streams lists, with all that was written before; with streaming turned off they come in pages."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from partage_base.kube import (
    Access,
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    Lease,
    Listed,
    Meta,
    Seen,
    follow,
    lease_path,
    leases_path,
)
from rig.client.wait import patient
from rig.control.plane import ControlPlane, control_plane
from rig.control.settings import ControlSettings
from rig.identity.people import OUR_NAMESPACE, Identity

PATH = leases_path(OUR_NAMESPACE)
TIMES = 5


class Recording(ApiServer):
    """An ApiServer that records the kinds of its list and watch requests."""

    def __init__(self, access: Access) -> None:
        super().__init__(access, user_agent="partage-test")
        self.ways: list[str] = []

    async def list(self, *args: Any, **more: Any) -> Any:
        self.ways.append("pages")
        return await super().list(*args, **more)

    def watch(self, *args: Any, since: str, **more: Any) -> AsyncGenerator[Any]:
        self.ways.append("watch" if since else "stream")
        return super().watch(*args, since=since, **more)


@pytest.fixture(scope="module")
def without() -> Iterator[ControlPlane]:
    settings = ControlSettings(controller_manager=False, kube_scheduler=False, feature_gates={"WatchList": False})
    with control_plane(settings) as control:
        yield control


@pytest.fixture
def admin(control: ControlPlane, whose: Callable[[Identity], Access]) -> Access:
    return whose(control.identities.admin)


def followed(server: ApiServer) -> AsyncGenerator[Seen[Lease]]:
    return follow(server, PATH, Lease, backoff=Backoff(first_s=0.2, most_s=2, random=random.random))


async def first(server: ApiServer) -> set[str]:
    """The names in the first list."""
    async with aclosing(followed(server)) as seen:
        listed = await anext(seen)
        assert isinstance(listed, Listed)
        return {item.metadata.name for item in listed.items}


async def told(server: Recording) -> list[str]:
    """Follow a series of changes, and return the kinds of requests used."""
    await server.create(PATH, Lease(metadata=Meta(name="one")), Lease)
    async with patient("all is told"), aclosing(followed(server)) as seen:
        listed = await anext(seen)
        assert isinstance(listed, Listed)
        assert "one" in {item.metadata.name for item in listed.items}
        await server.create(PATH, Lease(metadata=Meta(name="two")), Lease)
        await server.delete(lease_path(OUR_NAMESPACE, "one"))
        await server.delete(lease_path(OUR_NAMESPACE, "two"))
        changes = [await anext(seen) for _ in range(3)]
        assert [type(change) for change in changes] == [Changed, Deleted, Deleted]
    return server.ways


async def test_a_list_is_the_beginning_of_its_watch(admin: Access) -> None:
    async with Recording(admin) as server:
        assert await told(server) == ["stream"]


async def test_a_streamed_list_has_all_that_was_written_before_it_was_asked_for(admin: Access) -> None:
    async with Recording(admin) as server:
        names = {f"before-{number}" for number in range(TIMES)}
        for name in sorted(names):
            await server.create(PATH, Lease(metadata=Meta(name=name)), Lease)
            assert name in await first(server)
        for name in sorted(names):
            await server.delete(lease_path(OUR_NAMESPACE, name))
            assert name not in await first(server)
        assert set(server.ways) == {"stream"}


@pytest.mark.extended("starts an API server for it; unit/kube has one that does not stream")
async def test_an_api_server_with_streaming_turned_off_is_listed_in_pages(without: ControlPlane) -> None:
    access = Access.find(without.identities.kubeconfig(without.identities.admin, without.server))
    async with Recording(access) as server:
        assert await told(server) == ["stream", "pages", "watch"]
