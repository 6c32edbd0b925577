"""A followed list recovers from every failure, reports a loss once, and limits its retries."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Deleted,
    Listed,
    Lost,
    Node,
    NotAllowed,
    Seen,
    ServerFailed,
    Throttled,
    Undecodable,
    Unreachable,
    follow,
    node_path,
    nodes_path,
)
from partage_base.kube import informer as following_module
from partage_base.kube import lists as listing_module
from support.extent import examples
from support.fake_api import Drop, FakeApi, Fault, Lists, Refuse, Say
from support.kube import Waits, access_to, until
from support.loops import LOOPS


def a_node(api: FakeApi, name: str = "n1") -> None:
    api.objects.create(nodes_path(), {"metadata": {"name": name}})


def touch(api: FakeApi, value: str, name: str = "n1") -> None:
    api.objects.patch(node_path(name), {"metadata": {"labels": {"v": value}}})


def following(server: ApiServer, waits: Callable[[float], Awaitable[object]]) -> AsyncGenerator[Seen[Node]]:
    backoff = Backoff(first_s=1, most_s=8, random=lambda: 0.0)
    return follow(server, nodes_path(), Node, backoff=backoff, sleep=waits)


def names(seen: Seen[Node]) -> list[str]:
    assert isinstance(seen, Listed)
    return [item.metadata.name for item in seen.items]


async def next_value(seen: AsyncGenerator[Seen[Node]]) -> str:
    event = await anext(seen)
    assert isinstance(event, Changed)
    return event.item.metadata.labels["v"]


@pytest.mark.parametrize("lists", [Lists.STREAMED, Lists.REFUSED])
@pytest.mark.parametrize("loop", LOOPS)
async def test_all_are_told_and_then_every_change(api: FakeApi, server: ApiServer, loop: str, lists: Lists) -> None:
    api.lists = lists
    a_node(api)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        assert names(await anext(seen)) == ["n1"]
        touch(api, "1")
        assert await next_value(seen) == "1"
        a_node(api, "n2")
        assert isinstance(await anext(seen), Changed)
        api.objects.delete(node_path("n2"))
        assert isinstance(await anext(seen), Deleted)
    assert waits.seconds == []
    await until(lambda: not api.watchers)


@pytest.mark.parametrize(("lists", "calls"), [(Lists.STREAMED, 1), (Lists.REFUSED, 1 + 1 + 1)])
async def test_a_watch_that_ends_or_breaks_goes_on_without_a_word_and_without_a_list(
    api: FakeApi, server: ApiServer, lists: Lists, calls: int
) -> None:
    api.lists = lists
    a_node(api)
    async with aclosing(following(server, Waits())) as seen:
        await anext(seen)
        ends: list[Callable[[], None]] = [
            api.end_watches,
            lambda: api.write_to_watches(b"", then_cut=True),
            lambda: api.write_to_watches(b'{"', then_cut=True),
        ]
        for value, end in enumerate(ends):
            touch(api, f"{value}")
            assert await next_value(seen) == f"{value}"
            end()
            touch(api, f"{value}-missed")
            assert await next_value(seen) == f"{value}-missed"
    assert api.count("GET", nodes_path()) == calls + 3


@pytest.mark.parametrize("lists", [Lists.STREAMED, Lists.REFUSED])
async def test_what_was_missed_while_too_old_comes_with_a_new_list(
    api: FakeApi, server: ApiServer, lists: Lists
) -> None:
    api.lists = lists
    a_node(api)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        await anext(seen)
        touch(api, "1")
        await anext(seen)
        api.objects.delete(node_path("n1"))
        api.objects.create(nodes_path(), {"metadata": {"name": "n2"}})
        await anext(seen)
        await anext(seen)
        api.expire_watches()
        assert names(await anext(seen)) == ["n2"]
    assert waits.seconds == [0.5]


@pytest.mark.parametrize(
    ("fault", "error", "least_s"),
    [
        (Refuse(500), ServerFailed, 0.5),
        (Refuse(503, retry_after="7"), ServerFailed, 7),
        (Refuse(429, retry_after="7"), Throttled, 7),
        (Refuse(401), NotAllowed, 0.5),
        (Drop(), Unreachable, 0.5),
        (Say(b"garbage"), Exception, 0.5),
    ],
)
async def test_a_list_that_fails_is_told_once_and_tried_until_it_works(
    api: FakeApi, server: ApiServer, fault: Fault, error: type[Exception], least_s: float
) -> None:
    a_node(api)
    api.expect(fault, times=4)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        lost = await anext(seen)
        assert isinstance(lost, Lost)
        assert isinstance(lost.error, error)
        assert names(await anext(seen)) == ["n1"]
    extra_s = least_s - 0.5 if least_s == 0.5 else least_s
    assert waits.seconds == [extra_s + wait_s for wait_s in (0.5, 1, 2, 4)]


async def test_an_outage_is_told_once_and_ends_with_the_whole_list(api: FakeApi, server: ApiServer) -> None:
    a_node(api)

    async def sleep(_: float) -> None:
        if len(waits) == 5:
            a_node(api, "n2")
            await api.start()
        waits.append(_)

    waits: list[float] = []
    async with aclosing(following(server, sleep)) as seen:
        await anext(seen)
        touch(api, "1")
        await anext(seen)
        await api.stop()
        assert isinstance(await anext(seen), Lost)
        assert names(await anext(seen)) == ["n1", "n2"]
    assert len(waits) == 6


async def test_a_server_whose_watches_all_fail_is_asked_ever_more_rarely(api: FakeApi, server: ApiServer) -> None:
    api.lists = Lists.REFUSED
    a_node(api)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        told_of = [await anext(seen)]
        api.expect(Refuse(500), method="WATCH", times=6)
        told_of += [await anext(seen) for _ in range(10)]
        touch(api, "1")
        assert await next_value(seen) == "1"
    assert [type(each) for each in told_of] == [Listed, *5 * (Lost, Listed)]
    assert waits.seconds == [0.5, 1, 2, 4, 4, 4]


async def test_a_server_whose_watches_end_at_once_is_asked_ever_more_rarely(api: FakeApi, server: ApiServer) -> None:
    api.lists = Lists.REFUSED
    a_node(api)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        await anext(seen)
        api.expect(Say(b""), method="WATCH", times=5)
        touch(api, "1")
        assert await next_value(seen) == "1"
    assert waits.seconds == [0.5, 1, 2, 4, 4]
    assert api.count("GET") == 2 + 6


async def test_whatever_is_told_makes_the_next_wait_short_again(api: FakeApi, server: ApiServer) -> None:
    a_node(api)
    api.expect(Refuse(500), times=3)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        assert isinstance(await anext(seen), Lost)
        assert names(await anext(seen)) == ["n1"]
        touch(api, "1")
        assert await next_value(seen) == "1"
        api.expire_watches()
        assert names(await anext(seen)) == ["n1"]
    assert waits.seconds == [0.5, 1, 2, 0.5]


async def test_a_watch_that_was_quiet_for_long_goes_on_at_once(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following_module, "LONG_S", 0.0)
    api.lists = Lists.REFUSED
    a_node(api)
    waits = Waits()
    async with aclosing(following(server, waits)) as seen:
        await anext(seen)
        api.expect(Say(b""), method="WATCH", times=5)
        touch(api, "1")
        assert await next_value(seen) == "1"
    assert waits.seconds == []


async def test_whoever_stops_following_ends_it_while_it_waits(api: FakeApi, server: ApiServer) -> None:
    api.expect(Refuse(500), times=9)

    async def forever(_: float) -> None:
        await asyncio.Event().wait()

    seen = following(server, forever)
    assert isinstance(await anext(seen), Lost)
    waiting = asyncio.ensure_future(anext(seen))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


STEPS = st.lists(
    st.sampled_from(
        [
            *("add", "touch", "delete", "end", "cut", "half", "expire", "bookmark", "refuse", "drop", "429", "garbage"),
            *("hold", "let", "stream", "in pages", "ignore"),
        ]
    ),
    max_size=25,
)


@given(steps=STEPS, lists=st.sampled_from(Lists))
@settings(max_examples=examples(60))
def test_whatever_happens_in_whatever_order_what_is_seen_is_in_the_end_what_there_is(
    steps: list[str], lists: Lists
) -> None:
    async def story() -> None:
        async with FakeApi() as api, ApiServer(access_to(api.url), user_agent="t") as server:
            known: dict[str, str] = {}
            api.lists = lists

            async def look() -> None:
                async for seen in following(server, Waits()):
                    match seen:
                        case Listed(items):
                            known.clear()
                            known.update({item.metadata.name: item.metadata.resource_version for item in items})
                        case Changed(item):
                            known[item.metadata.name] = item.metadata.resource_version
                        case Deleted(item):
                            known.pop(item.metadata.name, None)
                        case Undecodable() | Lost():
                            pass

            looking = asyncio.create_task(look())
            for number, step in enumerate(steps):
                _disturb(api, step, number)
                await asyncio.sleep(0.001 if number % 3 == 0 else 0)
            _let(api)
            await until(lambda: known == _there(api))
            looking.cancel()
            await asyncio.wait([looking])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing_module, "SILENT_S", 0.02)
        patch.setattr(listing_module, "ASK_AGAIN_S", 0.0)
        asyncio.run(story())


def _there(api: FakeApi) -> dict[str, str]:
    items: list[Any] = api.objects.select(nodes_path(), {})
    return {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in items}


def _let(api: FakeApi) -> None:
    api.holds_ends = False
    api.end_lists()


def _disturb(api: FakeApi, step: str, number: int) -> None:
    held = sorted(_there(api)) or [""]
    does: dict[str, Callable[[], object]] = {
        "add": lambda: a_node(api, f"n{number}"),
        "touch": lambda: touch(api, str(number), held[0]) if held[0] else None,
        "delete": lambda: api.objects.delete(node_path(held[-1])) if held[-1] else None,
        "end": api.end_watches,
        "cut": lambda: api.write_to_watches(b"", then_cut=True),
        "half": lambda: api.write_to_watches(b'{"type"', then_cut=True),
        "expire": api.expire_watches,
        "bookmark": api.bookmark,
        "refuse": lambda: api.expect(Refuse(500)),
        "drop": lambda: api.expect(Drop()),
        "429": lambda: api.expect(Refuse(429, retry_after="1")),
        "garbage": lambda: api.write_to_watches(b"\xff\n"),
        "hold": lambda: setattr(api, "holds_ends", True),
        "let": lambda: _let(api),
        "stream": lambda: setattr(api, "lists", Lists.STREAMED),
        "in pages": lambda: setattr(api, "lists", Lists.REFUSED),
        "ignore": lambda: setattr(api, "lists", Lists.IGNORED),
    }
    does[step]()
