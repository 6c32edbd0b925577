"""Watches: the events they yield, and each way in which they end."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from itertools import count, pairwise

import pytest

from partage_base.kube import (
    ApiServer,
    Bookmark,
    Changed,
    Deleted,
    Event,
    Gone,
    KubeError,
    MalformedResponse,
    Node,
    Throttled,
    Unreachable,
    node_path,
    nodes_path,
)
from partage_base.kube import server as server_module
from support.fake_api import Drop, FakeApi, Refuse
from support.fake_watchers import line_of
from support.kube import until
from support.loops import LOOPS


async def all_of(server: ApiServer, since: str = "1", *, lasts_s: float | None = None) -> list[Event[Node]]:
    return [event async for event in server.watch(nodes_path(), Node, since=since, lasts_s=lasts_s)]


def a_node(api: FakeApi, name: str = "n1") -> None:
    api.objects.create(nodes_path(), {"metadata": {"name": name}})


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_watch_tells_every_change_and_bookmarks_until_it_ends(
    api: FakeApi, server: ApiServer, loop: str
) -> None:
    a_node(api)
    watch = server.watch(nodes_path(), Node, since="1")
    first = await anext(watch)
    assert isinstance(first, Changed)
    assert (first.item.metadata.name, first.version) == ("n1", "2")
    api.objects.patch(node_path("n1"), {"metadata": {"labels": {"a": "b"}}})
    api.bookmark()
    api.objects.delete(node_path("n1"))
    api.end_watches()
    changed, bookmark, deleted = [event async for event in watch]
    assert isinstance(changed, Changed)
    assert changed.item.metadata.labels == {"a": "b"}
    assert bookmark == Bookmark("3")
    assert isinstance(deleted, Deleted)
    assert (deleted.item.metadata.name, deleted.version) == ("n1", "4")


async def test_others_have_turns_between_changes_that_come_together(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "TURN_S", 0.0)
    turns = count()

    async def others() -> None:
        while True:
            next(turns)
            await asyncio.sleep(0)

    async with aclosing(server.watch(nodes_path(), Node, since="1")) as watch:
        first = asyncio.ensure_future(anext(watch))
        await until(lambda: api.watchers)
        api.write_to_watches(b"".join(line_of("ADDED", _versioned(f"n{number}")) for number in range(50)))
        api.end_watches()
        await first
        beside = asyncio.create_task(others())
        had = [next(turns) async for _ in watch]
        beside.cancel()
    assert len(had) == 49
    assert all(later > before + 1 for before, later in pairwise(had))


def _versioned(name: str) -> dict[str, dict[str, str]]:
    return {"metadata": {"name": name, "resourceVersion": "2"}}


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_client_that_is_closed_between_two_events_ends_its_watches_as_calls(
    api: FakeApi, server: ApiServer, loop: str
) -> None:
    a_node(api)
    watch = server.watch(nodes_path(), Node, since="1")
    await anext(watch)
    await server.close()
    with pytest.raises(Unreachable, match="this client is closed"):
        await anext(watch)


async def test_a_watch_goes_on_from_where_it_is_told_to(api: FakeApi, server: ApiServer) -> None:
    for name in ("n1", "n2", "n3"):
        a_node(api, name)
    watch = server.watch(nodes_path(), Node, since="3", fields="metadata.name=n3")
    event = await anext(watch)
    assert isinstance(event, Changed)
    assert event.item.metadata.name == "n3"
    await watch.aclose()
    await until(lambda: not api.watchers)
    query = api.asked[0].query
    assert (query["allowWatchBookmarks"], query["resourceVersion"]) == ("true", "3")
    assert 300 <= int(query["timeoutSeconds"]) <= 600


@pytest.mark.slow
async def test_a_watch_lasts_as_long_as_one_says(api: FakeApi, server: ApiServer) -> None:
    assert await all_of(server, lasts_s=1) == []


async def test_a_watch_that_says_nothing_when_it_should_have_ended_is_dead_and_its_reader_is_never_cancelled(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_WATCH_ENDS_WITHIN_S", 0.0)
    a_node(api)
    watch = server.watch(nodes_path(), Node, since="1", lasts_s=0.5)
    await anext(watch)
    await asyncio.sleep(0.6)  # the reader is busy while the time runs out
    with pytest.raises(Unreachable, match=r"no whole answer within 0\.5 s"):
        await anext(watch)


async def test_what_is_too_old_to_go_on_from_is_gone_at_once_or_in_the_middle(api: FakeApi, server: ApiServer) -> None:
    api.objects.compact()
    with pytest.raises(Gone):
        await all_of(server)
    watch = server.watch(nodes_path(), Node, since=str(api.objects.version))
    a_node(api)
    await anext(watch)
    api.expire_watches()
    with pytest.raises(Gone, match="WATCH /api/v1/nodes: 410 Expired: too old"):
        await anext(watch)


@pytest.mark.parametrize(
    ("line", "error"),
    [
        (b'{"type":"ERROR","object":{"code":429,"details":{"retryAfterSeconds":1}}}\n', Throttled),
        (b'{"type":"ERROR","object":{}}\n', KubeError),
        (b'{"type":"ERROR","object":7}\n', KubeError),
        (b'{"type":"PARTY","object":{"metadata":{"resourceVersion":"1"}}}\n', MalformedResponse),
        (b'{"type":"ADDED","object":{"metadata":{}}}\n', MalformedResponse),
        (b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"2","name":7}}}\n', MalformedResponse),
        (b'{"type":"ADDED"}\n', MalformedResponse),
        (b"<html>\n", MalformedResponse),
        (b"\xff\xfe\n", MalformedResponse),
    ],
)
async def test_a_line_that_tells_nothing_ends_the_watch_with_an_error(
    api: FakeApi, server: ApiServer, line: bytes, error: type[KubeError]
) -> None:
    a_node(api)
    watch = server.watch(nodes_path(), Node, since="1")
    await anext(watch)
    api.write_to_watches(line)
    with pytest.raises(error):
        await anext(watch)


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_watch_that_is_cut_in_the_middle_of_a_line_says_so(api: FakeApi, server: ApiServer, loop: str) -> None:
    a_node(api)
    watch = server.watch(nodes_path(), Node, since="1")
    await anext(watch)
    api.write_to_watches(b'{"type":"ADDED","obj', then_cut=True)
    with pytest.raises(Unreachable, match="cut"):
        await anext(watch)
    half = server.watch(nodes_path(), Node, since="1")
    await anext(half)
    api.write_to_watches(b'{"type":"ADDED","obj')
    api.end_watches()
    with pytest.raises(Unreachable, match="in the middle of a line"):
        await anext(half)


async def test_a_watch_may_be_refused_or_dropped_at_its_beginning(api: FakeApi, server: ApiServer) -> None:
    api.expect(Refuse(429, retry_after="3"), method="WATCH")
    with pytest.raises(Throttled) as raised:
        await all_of(server)
    assert raised.value.retry_after_s == 3.0
    api.expect(Drop(), method="WATCH")
    with pytest.raises(Unreachable):
        await all_of(server)


async def test_closing_a_watch_ends_its_connection(api: FakeApi, server: ApiServer) -> None:
    a_node(api)
    watch = server.watch(nodes_path(), Node, since="1")
    await anext(watch)
    assert api.watchers == 1
    await watch.aclose()
    await until(lambda: not api.watchers)
