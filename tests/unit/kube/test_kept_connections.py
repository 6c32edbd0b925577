"""Connections that serve successive calls as long as their peer allows it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

import pytest

from partage_base.kube import ApiServer, Node, Unreachable, node_path
from partage_base.kube.connections import Connection
from support.kube import access_to, until
from support.loops import LOOPS

WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CLOSING = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
N1 = node_path("n1")


class Peer:
    """Answers each request with the next of `says`; None closes without an answer. Closes after the last."""

    def __init__(self, *says: bytes | None) -> None:
        self._says = list(says)
        self.port = self.accepted = 0
        self.open: list[asyncio.StreamWriter] = []

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        self.open.append(writer)
        with suppress(asyncio.IncompleteReadError):  # the caller has closed the connection
            while self._says:
                await reader.readuntil(b"\r\n\r\n")
                said = self._says.pop(0)
                if said is None:
                    break
                writer.write(said)
        writer.close()


@pytest.fixture(params=LOOPS, autouse=True)
def loop(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def peer(says: Sequence[bytes | None]) -> AsyncIterator[Peer]:
    peer = Peer(*says)
    async with await asyncio.start_server(peer.converse, "127.0.0.1") as listening:
        peer.port = listening.sockets[0].getsockname()[1]
        yield peer


@pytest.fixture
def host() -> str:
    return "127.0.0.1"


@pytest.fixture
async def server(peer: Peer, host: str) -> AsyncIterator[ApiServer]:
    async with ApiServer(access_to(f"http://{host}:{peer.port}"), user_agent="t", deadline_s=600) as server:
        yield server


@pytest.mark.parametrize("says", [[WHOLE, WHOLE, WHOLE, WHOLE]])
async def test_calls_one_after_the_other_need_one_connection(peer: Peer, server: ApiServer) -> None:
    for _ in range(3):
        assert await server.get(N1, Node) == Node()
    assert peer.accepted == 1


@pytest.mark.parametrize("says", [[CLOSING, WHOLE, WHOLE]])
async def test_a_connection_whose_answer_says_close_is_not_used_again(peer: Peer, server: ApiServer) -> None:
    await server.get(N1, Node)
    await server.get(N1, Node)
    assert peer.accepted == 2


@pytest.mark.parametrize("says", [[WHOLE, WHOLE, WHOLE]])
async def test_a_connection_that_its_peer_closes_between_calls_costs_no_call(peer: Peer, server: ApiServer) -> None:
    await server.get(N1, Node)
    peer.open[0].close()
    await peer.open[0].wait_closed()
    await asyncio.sleep(0.02)
    await server.get(N1, Node)
    assert peer.accepted == 2


@pytest.mark.parametrize("says", [[WHOLE, WHOLE, WHOLE]])
async def test_a_peer_that_speaks_unasked_is_left(peer: Peer, server: ApiServer) -> None:
    await server.get(N1, Node)
    peer.open[0].write(WHOLE)
    await peer.open[0].drain()
    await until(peer.open[0].is_closing)
    await server.get(N1, Node)
    assert peer.accepted == 2


@pytest.mark.parametrize("says", [[WHOLE, None, WHOLE]])
async def test_a_connection_that_closes_instead_of_answering_may_have_done_it(peer: Peer, server: ApiServer) -> None:
    await server.get(N1, Node)
    with pytest.raises(Unreachable, match="closed before there was an answer") as raised:
        await server.get(N1, Node)
    assert raised.value.may_be_done
    assert peer.accepted == 1


@pytest.mark.parametrize("says", [[b"", WHOLE, WHOLE]])
async def test_a_call_that_is_given_up_leaves_no_connection_to_the_next_one(peer: Peer, server: ApiServer) -> None:
    call = asyncio.create_task(server.get(N1, Node))
    await until(lambda: peer.accepted)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await server.get(N1, Node) == Node()
    assert peer.accepted == 2


@pytest.mark.parametrize("says", [[WHOLE, WHOLE]])
@pytest.mark.parametrize("host", ["localhost"])
async def test_a_name_is_looked_up(server: ApiServer) -> None:
    assert await server.get(N1, Node) == Node()


def test_a_connection_that_is_gone_says_so_at_once() -> None:
    assert not Connection().is_open
