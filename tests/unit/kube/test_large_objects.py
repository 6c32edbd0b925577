"""Objects of any size are followed, or skipped by name: a large object stops no other user."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from partage_base.kube import (
    ApiServer,
    Backoff,
    Changed,
    Listed,
    MalformedResponse,
    Node,
    Undecodable,
    follow,
    pods_path,
)
from partage_base.kube.events import LONGEST_LINE_BYTES
from partage_base.kube.server import MOST_ANSWER_BYTES
from support.kube import access_to

LARGEST = 1_450_000
"""The number of `<`: the API server writes each as six bytes, and etcd stores one, which fits its 1.5 MiB."""
Wire = list[tuple[str, bytes]]


def pod(name: str, fill: int = 0) -> tuple[str, bytes]:
    """A pod as Go's encoder writes it."""
    whole = {
        "metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "5"},
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "args": ["<" * fill]}]},
    }
    return name, json.dumps(whole, separators=(",", ":")).replace("<", "\\u003c").encode()


class Server:
    """An API server with these pods, with or without streamed lists, that reports one change."""

    def __init__(self, pods: Wire, *, streams: bool, change: bytes = b"") -> None:
        self.pods, self.streams, self.change = pods, streams, change
        self.pages: list[int] = []
        self._conversations: list[asyncio.Task[None]] = []

    @asynccontextmanager
    async def asked(self, *, most_answer_bytes: int = MOST_ANSWER_BYTES) -> AsyncGenerator[ApiServer]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        access = access_to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        async with server:
            async with ApiServer(access, user_agent="t", most_answer_bytes=most_answer_bytes) as client:
                yield client
            await asyncio.gather(*self._conversations, return_exceptions=True)

    def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._conversations.append(asyncio.create_task(self._converse(reader, writer)))

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                target = (await reader.readuntil(b"\r\n\r\n")).split(b" ")[1].decode()
                query = {name: value[0] for name, value in parse_qs(urlsplit(target).query).items()}
                await self._answer(writer, query)
                if "watch" in query and not self._refuses(query):
                    await reader.read()
        writer.transport.abort()

    def _refuses(self, query: Mapping[str, str]) -> bool:
        return "sendInitialEvents" in query and not self.streams

    async def _answer(self, writer: asyncio.StreamWriter, query: Mapping[str, str]) -> None:
        if self._refuses(query):
            writer.write(b"HTTP/1.1 422 No\r\nContent-Length: 2\r\n\r\n{}")
            return
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        if "watch" not in query:
            await self._chunks(writer, self._page(query))
            writer.write(b"0\r\n\r\n")
            return
        if "sendInitialEvents" in query:
            for _, body in self.pods:
                await self._chunks(writer, (b'{"type":"ADDED","object":', body, b"}\n"))
            mark = {"resourceVersion": "9", "annotations": {"k8s.io/initial-events-end": "true"}}
            await self._chunks(writer, (line("BOOKMARK", json.dumps({"metadata": mark}).encode()),))
        if self.change:
            await self._chunks(writer, (line("MODIFIED", self.change),))

    def _page(self, query: Mapping[str, str]) -> Iterable[bytes]:
        begin, limit = int(query.get("continue", "0")), int(query.get("limit", "1000000"))
        self.pages.append(limit)
        end = begin + limit
        onward = b',"continue":"%d"' % end if end < len(self.pods) else b""
        yield b'{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"%b},"items":[' % onward
        for place, (_, body) in enumerate(self.pods[begin:end]):
            yield from (b",", body) if place else (body,)
        yield b"]}"

    async def _chunks(self, writer: asyncio.StreamWriter, parts: Iterable[bytes]) -> None:
        for part in parts:
            writer.write(b"%x\r\n" % len(part))
            for begin in range(0, len(part), 1 << 16):
                writer.write(part[begin : begin + (1 << 16)])
                await writer.drain()
            writer.write(b"\r\n")


def line(kind: str, body: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind.encode(), body)


async def told(server: Server, count: int, *, most_answer_bytes: int = MOST_ANSWER_BYTES) -> list[Any]:
    """The first `count` items that following yields."""
    backoff = Backoff(first_s=0.01, most_s=0.02, random=lambda: 0.5)
    async with (
        server.asked(most_answer_bytes=most_answer_bytes) as client,
        aclosing(follow(client, pods_path(), Node, backoff=backoff)) as seen,
    ):
        return [await anext(seen) for _ in range(count)]


@pytest.mark.slow
@pytest.mark.parametrize("streams", [True, False])
async def test_pods_of_the_largest_size_are_followed(*, streams: bool) -> None:
    name, body = pod("large", LARGEST)
    server = Server([(name, body)] * 9, streams=streams, change=body)
    listed, changed = await told(server, 2)
    assert isinstance(listed, Listed)
    assert (len(listed.items), listed.undecodable) == (1 if streams else 9, ())
    assert isinstance(changed, Changed)


@pytest.mark.parametrize("streams", [True, False])
async def test_what_is_larger_than_any_line_and_any_page_is_passed_over_by_name(*, streams: bool) -> None:
    small = [pod(f"p{place}") for place in range(20)]
    large = pod("large", (LONGEST_LINE_BYTES if streams else 1 << 16) // 6 + 1000)
    server = Server([*small[:7], large, *small[7:]], streams=streams, change=large[1] if streams else small[0][1])
    listed, changed = await told(server, 2, most_answer_bytes=1 << 16)
    assert isinstance(listed, Listed)
    assert sorted(each.metadata.name for each in listed.items) == sorted(name for name, _ in small)
    (left_out,) = listed.undecodable
    assert (left_out.key, left_out.uid, left_out.is_gone) == (("team", "large"), "uid-large", False)
    assert isinstance(changed, Undecodable if streams else Changed)
    assert len(server.pages) <= 20, "down to one and up again, not one by one"


async def test_pages_are_as_large_as_fits_and_not_asked_for_twice_for_ever() -> None:
    server = Server([pod(f"p{place}", 200) for place in range(400)], streams=False)
    async with server.asked(most_answer_bytes=1 << 16) as client:
        listing = await client.list(pods_path(), Node, limit=1000)
        assert len(listing.items) == 400
    assert sum(1 for limit in server.pages if limit > 40) <= 5, "what is too large is tried at the beginning alone"


async def test_a_login_page_is_no_list_and_is_asked_for_once() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        body = b"<html>log in</html>"
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        asks.append(1)
        writer.close()

    asks: list[int] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    access = access_to(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    async with server, ApiServer(access, user_agent="t") as client:
        with pytest.raises(MalformedResponse, match="login page"):
            await client.list(pods_path(), Node, limit=1000)
    assert len(asks) == 1


@pytest.mark.slow
@pytest.mark.parametrize("streams", [True, False])
async def test_many_large_objects_in_a_row_hold_no_more_than_one_answer(*, streams: bool) -> None:
    name, body = pod("large", LARGEST)
    server = Server([(f"{name}-{place}", body) for place in range(12)], streams=streams, change=body)
    tracemalloc.start()
    try:
        await told(server, 2)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert held < 3 * MOST_ANSWER_BYTES < 12 * len(body)
