"""A streamed list is reported once, completely and correctly, or not at all; without streaming it is read in pages."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_base.kube import (
    ApiServer,
    Backoff,
    Bookmark,
    Changed,
    Deleted,
    KubeError,
    Listed,
    Lost,
    MalformedResponse,
    Meta,
    Node,
    Seen,
    ServerFailed,
    Throttled,
    Unreachable,
    follow,
    node_path,
    nodes_path,
)
from partage_base.kube import lists as listing_module
from partage_base.kube.events import Fold
from support.fake_api import Drop, FakeApi, Fault, Lists, Refuse, Say
from support.fake_watchers import bookmark, line_of
from support.kube import Waits, until
from support.loops import LOOPS

STREAM, PAGES, WATCH = "stream", "pages", "watch"


def following(
    server: ApiServer, waits: Callable[[float], Awaitable[object]] | None = None, *, fields: str = ""
) -> AsyncGenerator[Seen[Node]]:
    backoff = Backoff(first_s=1, most_s=8, random=lambda: 0.0)
    return follow(server, nodes_path(), Node, fields=fields, backoff=backoff, sleep=waits or Waits())


def add(api: FakeApi, *names: str) -> None:
    for name in names:
        api.objects.create(nodes_path(), {"metadata": {"name": name}})


def touch(api: FakeApi, name: str, value: str = "1") -> None:
    api.objects.patch(node_path(name), {"metadata": {"labels": {"v": value}}})


def names(seen: Seen[Node]) -> list[str]:
    assert isinstance(seen, Listed)
    return sorted(item.metadata.name for item in seen.items)


def ways(api: FakeApi) -> list[str]:
    """The ways in which the list was requested."""

    def way(query: dict[str, str]) -> str:
        return STREAM if "sendInitialEvents" in query else WATCH if "watch" in query else PAGES

    return [way(each.query) for each in api.asked]


async def begun(api: FakeApi, seen: AsyncGenerator[Seen[Node]]) -> asyncio.Future[Seen[Node]]:
    """The next item, once a watch has started."""
    coming = asyncio.ensure_future(anext(seen))
    await until(lambda: api.watchers)
    return coming


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_list_and_its_changes_are_one_request(api: FakeApi, server: ApiServer, loop: str) -> None:
    add(api, "n1", "n2", "n3")
    async with aclosing(following(server, fields="metadata.name!=n2")) as seen:
        assert names(await anext(seen)) == ["n1", "n3"]
        touch(api, "n2")
        touch(api, "n3")
        changed = await anext(seen)
        assert isinstance(changed, Changed)
        assert changed.item.metadata.name == "n3"
        assert ways(api) == [STREAM]
        query = api.asked[0].query
        assert (query["resourceVersionMatch"], query["allowWatchBookmarks"]) == ("NotOlderThan", "true")
        assert "resourceVersion" not in query, "as new as the request, and not as old as some cache"
    await until(lambda: not api.watchers)


async def test_nothing_is_a_list_too(api: FakeApi, server: ApiServer) -> None:
    async with aclosing(following(server)) as seen:
        assert names(await anext(seen)) == []


async def test_what_changes_while_the_list_is_told_is_in_it_and_a_bookmark_does_not_end_it(
    api: FakeApi, server: ApiServer
) -> None:
    api.holds_ends = True
    add(api, "n1", "n2", "n3")
    async with aclosing(following(server)) as seen:
        coming = await begun(api, seen)
        touch(api, "n1", "new")
        api.bookmark()
        api.objects.delete(node_path("n2"))
        add(api, "n4", "n5")
        api.objects.delete(node_path("n3"))
        add(api, "n3")
        api.objects.delete(node_path("n5"))
        api.bookmark()
        await asyncio.sleep(0.02)
        assert not coming.done()
        api.end_lists()
        listed = await coming
        assert names(listed) == ["n1", "n3", "n4"]
        assert isinstance(listed, Listed)
        assert {item.metadata.labels.get("v") for item in listed.items if item.metadata.name == "n1"} == {"new"}


@pytest.mark.parametrize("cut", [b"", b'{"type"', b"\xff\n", None])
async def test_what_was_told_of_a_list_that_breaks_off_is_dropped(
    api: FakeApi, server: ApiServer, cut: bytes | None
) -> None:
    api.holds_ends = True
    add(api, "n1", "n2")
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        coming = await begun(api, seen)
        if cut is None:
            api.end_watches()
        else:
            api.write_to_watches(cut, then_cut=True)
        api.holds_ends = False
        assert isinstance(await coming, Lost)
        api.objects.delete(node_path("n1"))
        assert names(await anext(seen)) == ["n2"]
    assert waits.seconds == [0.5]
    assert ways(api)[:2] == [STREAM, PAGES]


@pytest.mark.parametrize(
    ("fault", "error", "wait_s"),
    [
        (Refuse(429, retry_after="7"), Throttled, 7.5),
        (Refuse(503, retry_after="3"), ServerFailed, 3.5),
        (Refuse(500), ServerFailed, 0.5),
        (Drop(), Unreachable, 0.5),
        (Say(b'{"kind":"List","items":[]}\n'), MalformedResponse, 0.5),
        (Say(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"2","name":7}}}\n'), MalformedResponse, 0.5),
        (Say(line_of("ERROR", {"code": 504, "details": {"retryAfterSeconds": 1}})), ServerFailed, 1.5),
        (
            Say(line_of("ADDED", {"metadata": {"resourceVersion": "1", "name": "ghost"}}) + bookmark(9)),
            Unreachable,
            0.5,
        ),
        (Refuse(410), None, 0.5),
    ],
)
async def test_what_fails_is_waited_for_then_tried_in_pages_and_streamed_again_later(
    api: FakeApi, server: ApiServer, fault: Fault, error: type[KubeError] | None, wait_s: float
) -> None:
    add(api, "n1")
    api.expect(fault)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        if error is not None:
            lost = await anext(seen)
            assert isinstance(lost, Lost)
            assert isinstance(lost.error, error)
        assert names(await anext(seen)) == ["n1"]
        assert waits.seconds == [wait_s]
        coming = await begun(api, seen)
        api.expire_watches()
        assert names(await coming) == ["n1"]
        assert ways(api) == [STREAM, PAGES, WATCH, STREAM]


async def test_while_all_fails_both_ways_are_tried_in_turn(api: FakeApi, server: ApiServer) -> None:
    api.expect(Refuse(500), times=5)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        assert isinstance(await anext(seen), Lost)
        assert names(await anext(seen)) == []
    assert ways(api)[:6] == [STREAM, PAGES] * 3
    assert waits.seconds == [0.5, 1, 2, 4, 4]


@pytest.mark.parametrize("status", [400, 422])
async def test_a_server_that_refuses_is_listed_in_pages_at_once_and_asked_again_only_after_long(
    api: FakeApi, server: ApiServer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(api, "n1")
    api.expect(Refuse(status), method="WATCH")
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        assert names(await anext(seen)) == ["n1"]
        assert waits.seconds == []
        for _ in range(2):
            coming = await begun(api, seen)
            api.expire_watches()
            assert names(await coming) == ["n1"]
        assert ways(api) == [STREAM, PAGES, WATCH, PAGES, WATCH, PAGES]
        monkeypatch.setattr(listing_module, "ASK_AGAIN_S", 0.0)
        coming = await begun(api, seen)
        api.expire_watches()
        assert names(await coming) == ["n1"]
        assert ways(api)[-1] == STREAM


async def test_silence_where_the_list_should_end_is_a_server_that_does_not_stream(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "SILENT_S", 0.05)
    api.lists = Lists.IGNORED
    add(api, "n1")
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        assert names(await anext(seen)) == ["n1"]
        touch(api, "n1")
        assert isinstance(await anext(seen), Changed)
        assert (waits.seconds, ways(api)) == ([], [STREAM, PAGES, WATCH])
        await until(lambda: api.watchers == 1)


async def test_changes_without_end_where_the_list_should_end_are_too(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "WHOLE_S", 0.1)
    api.lists = Lists.IGNORED
    add(api, "n1")
    async with aclosing(following(server)) as seen:
        coming = await begun(api, seen)
        number = 0
        while not coming.done():
            touch(api, "n1", str(number := number + 1))
            await asyncio.sleep(0.005)
        assert names(await coming) == ["n1"]
        assert ways(api) == [STREAM, PAGES]


async def test_a_list_without_end_is_given_up_before_it_fills_the_memory(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing_module, "MOST_ITEMS", 3)
    add(api, *(f"n{number}" for number in range(4)))
    async with aclosing(following(server)) as seen:
        lost = await anext(seen)
        assert isinstance(lost, Lost)
        assert "a list of more than 3 items" in str(lost.error)
        await until(lambda: not api.watchers)


async def test_whoever_stops_while_the_list_is_told_ends_its_connection(api: FakeApi, server: ApiServer) -> None:
    api.holds_ends = True
    coming = await begun(api, following(server))
    coming.cancel()
    with pytest.raises(asyncio.CancelledError):
        await coming
    await until(lambda: not api.watchers)


async def test_whoever_stops_as_soon_as_he_has_the_list_ends_its_connection(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    watches: list[AsyncGenerator[object]] = []  # kept, so that the garbage collector does not end them
    real = ApiServer.watch

    def watch(*args: Any, **more: Any) -> AsyncGenerator[Any]:
        watches.append(real(*args, **more))
        return watches[-1]

    monkeypatch.setattr(ApiServer, "watch", watch)
    seen = following(server)
    await anext(seen)
    await seen.aclose()
    assert len(watches) == 1
    await until(lambda: not api.watchers)


class Light(msgspec.Struct, weakref=True):
    """A node whose deletion can be observed."""

    metadata: Meta


@pytest.mark.slow
@pytest.mark.parametrize("lists", [Lists.STREAMED, Lists.REFUSED])
async def test_what_was_listed_is_not_held_for_as_long_as_it_is_followed(
    api: FakeApi, server: ApiServer, lists: Lists
) -> None:
    api.lists = lists
    add(api, "n1")
    backoff = Backoff(first_s=1, most_s=8, random=lambda: 0.0)
    async with aclosing(follow(server, nodes_path(), Light, backoff=backoff)) as seen:
        listed = await anext(seen)
        assert isinstance(listed, Listed)
        item = weakref.ref(listed.items[0])
        del listed
        coming = asyncio.ensure_future(anext(seen))
        await asyncio.sleep(0.01)
        gc.collect()
        assert item() is None
        touch(api, "n1")
        await coming


async def test_a_watch_that_ends_right_after_its_list_goes_on_from_the_end_of_that(
    api: FakeApi, server: ApiServer
) -> None:
    add(api, "n1", "n2")
    async with aclosing(following(server)) as seen:
        assert names(await anext(seen)) == ["n1", "n2"]
        api.end_watches()
        touch(api, "n1")
        changed = await anext(seen)
        assert isinstance(changed, Changed)
        assert changed.item.metadata.name == "n1"
        assert ways(api) == [STREAM, WATCH]
        assert api.asked[-1].query["resourceVersion"] == "3"


async def test_only_the_bookmark_that_says_so_ends_a_list(api: FakeApi, server: ApiServer) -> None:
    wrong = [{"k8s.io/initial-events-end": "false"}, {"other": "true"}, None]
    lines = b"".join(bookmark(3, each) for each in wrong)
    nothing = json.dumps({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": "3", "annotations": None}}})
    api.expect(Say(lines + nothing.encode() + b"\n"), method="WATCH")
    events = [event async for event in server.watch(nodes_path(), Node, since="")]
    assert events == [Bookmark("3")] * 4


EVENTS = st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 30), st.booleans()), max_size=20)


@given(events=EVENTS)
@settings(max_examples=40)
def test_of_each_object_the_newest_word_counts_in_whatever_order_they_come(events: list[tuple[str, int, bool]]) -> None:
    fold: Fold[str] = Fold()
    newest: dict[str, tuple[int, bool]] = {}
    for name, version, is_there in events:
        kind = Changed if is_there else Deleted
        fold.take(kind(f"{name}{version}", str(version), ("team", name)))
        if version >= newest.get(name, (0, False))[0]:
            newest[name] = (version, is_there)
    there = {f"{name}{version}" for name, (version, is_there) in newest.items() if is_there}
    assert set(fold.items) == there
    assert len(fold.items) == len(there)


def test_versions_that_are_no_numbers_count_in_the_order_in_which_they_come() -> None:
    fold: Fold[str] = Fold()
    for item, version in (("old", "zz"), ("new", "aa")):
        fold.take(Changed(item, version, ("", "n1")))
    assert fold.items == ("new",)


def test_objects_of_one_name_in_two_namespaces_are_two() -> None:
    fold: Fold[str] = Fold()
    for namespace in ("a", "b"):
        fold.take(Changed(namespace, "1", (namespace, "p")))
    assert fold.items == ("a", "b")
