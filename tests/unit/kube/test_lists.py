"""Lists: complete, in pages, selected, and expired."""

from __future__ import annotations

import pytest

from partage_base.kube import ApiServer, Gone, Node, nodes_path, pods_path
from support.fake_api import FakeApi, Refuse, Say


def named(items: tuple[Node, ...]) -> list[str]:
    return [item.metadata.name for item in items]


def nodes(api: FakeApi, count: int) -> list[str]:
    names = [f"n{number:03}" for number in range(count)]
    for name in names:
        api.objects.create(nodes_path(), {"metadata": {"name": name, "labels": {"zone": name[-1]}}})
    return names


@pytest.mark.parametrize(("limit", "calls"), [(0, 1), (3, 4), (10, 1), (100, 1)])
async def test_a_list_is_whole_however_many_pages_it_takes(
    api: FakeApi, server: ApiServer, limit: int, calls: int
) -> None:
    names = nodes(api, 10)
    listing = await server.list(nodes_path(), Node, limit=limit)
    assert named(listing.items) == names
    assert listing.resource_version == str(api.objects.version)
    assert api.count("GET") == calls


async def test_selectors_choose(api: FakeApi, server: ApiServer) -> None:
    nodes(api, 20)
    assert named((await server.list(nodes_path(), Node, fields="metadata.name=n007")).items) == ["n007"]
    assert named((await server.list(nodes_path(), Node, labels="zone=3")).items) == ["n003", "n013"]


async def test_pods_are_listed_of_one_namespace_or_of_all(api: FakeApi, server: ApiServer) -> None:
    for namespace in ("a", "b"):
        api.objects.create(pods_path(namespace), {"metadata": {"name": f"pod-{namespace}"}})
    assert named((await server.list(pods_path("a"), Node)).items) == ["pod-a"]
    assert named((await server.list(pods_path(), Node)).items) == ["pod-a", "pod-b"]


async def test_a_page_that_is_too_old_is_gone(api: FakeApi, server: ApiServer) -> None:
    nodes(api, 10)
    api.expect(Say(b'{"metadata":{"resourceVersion":"5","continue":"1:3"},"items":[]}'))
    api.objects.compact()
    with pytest.raises(Gone, match="too old"):
        await server.list(nodes_path(), Node, limit=3)


async def test_an_error_in_a_later_page_is_an_error_of_the_list(api: FakeApi, server: ApiServer) -> None:
    nodes(api, 10)
    api.expect(Say(b'{"metadata":{"resourceVersion":"5","continue":"5:3"},"items":[]}'))
    api.expect(Refuse(410))
    with pytest.raises(Gone):
        await server.list(nodes_path(), Node, limit=3)


@pytest.mark.parametrize("items", ["null", "[]"])
async def test_none_may_be_written_as_null(api: FakeApi, server: ApiServer, items: str) -> None:
    api.expect(Say(b'{"metadata":{"resourceVersion":"9"},"items":%s}' % items.encode()))
    listing = await server.list(nodes_path(), Node)
    assert (listing.items, listing.resource_version) == ((), "9")
