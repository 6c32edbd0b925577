"""The small client against a third-party gRPC server, and against peers that violate the protocol."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Sized
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import hpack
import pytest

from partage_base.cri import CriError, PeerAway, PeerRefused, PeerSlow, UnaryClient
from partage_base.http2 import frames
from partage_base.http2.client import ClientHalf, header_block
from support import grpc_peer

FRAME = b"\0\0\0\4\0\0\0\0\0"  # empty SETTINGS, a server's first frame


@contextmanager
def peer(path: Path) -> Generator[None]:
    with subprocess.Popen([sys.executable, grpc_peer.__file__, str(path)], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"listening\n"
        try:
            yield
        finally:
            process.kill()
            path.unlink(missing_ok=True)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "peer.sock"


@asynccontextmanager
async def client_of(path: Path) -> AsyncGenerator[UnaryClient]:
    client = UnaryClient(path)
    try:
        yield client
    finally:
        client.close()
        await asyncio.sleep(0)  # the transport closes its end


async def ask(client: UnaryClient, what: str, request: bytes = b"", deadline_s: float = 600.0) -> bytes:
    return await client.call(f"/test.Service/{what}", request, deadline_s=deadline_s)


async def test_answers_small_and_large_one_by_one_and_together(path: Path) -> None:
    with peer(path):
        async with client_of(path) as client:
            assert await ask(client, "Echo", b"\0\xff") == b"\0\xff"
            assert await ask(client, "Echo") == b""
            for size in (0, 1, 16_379, 16_384, 1 << 20, 15 << 20):
                assert len(await ask(client, "Large", b"%d" % size)) == size
            answers = await asyncio.gather(*(ask(client, "Echo", b"%d" % each) for each in range(200)))
            assert answers == [b"%d" % each for each in range(200)]


async def test_more_is_said_on_one_connection_than_fits_any_window(path: Path) -> None:
    with peer(path):
        async with client_of(path) as client:
            for _ in range(12):
                assert await ask(client, "Echo", b"x" * 16_000) == b"x" * 16_000
                assert len(set(await asyncio.gather(*(ask(client, "Echo", b"y" * 500_000) for _ in range(3))))) == 1
                assert len(await ask(client, "Large", b"%d" % (4 << 20))) == 4 << 20


async def test_a_status_is_told_with_its_number_and_words(path: Path) -> None:
    with peer(path):
        async with client_of(path) as client:
            with pytest.raises(PeerRefused) as refused:
                await ask(client, "Refuse", "weil es nicht geht: ü%".encode())
            assert (refused.value.status, refused.value.words) == (9, "weil es nicht geht: ü%")
            with pytest.raises(PeerRefused) as refused:
                await ask(client, "NoSuchMethod")
            assert refused.value.status == 12
            assert await ask(client, "Echo", b"after") == b"after"


async def test_a_call_ends_at_its_deadline_and_holds_up_no_other(path: Path) -> None:
    with peer(path):
        async with client_of(path) as client:
            with pytest.raises(PeerSlow) as slow:
                await asyncio.gather(ask(client, "Slow", b"1", deadline_s=0.1), ask(client, "Echo"))
            assert str(slow.value) == f"{path}: no answer to Slow within 0.1 s"
            assert await ask(client, "Echo", b"after") == b"after"


async def test_a_peer_that_is_not_there_and_comes_and_goes_and_comes_again(path: Path) -> None:
    async with client_of(path) as client:
        with pytest.raises(PeerAway) as away:
            await ask(client, "Echo")
        assert str(away.value) == f"{path}: Echo: No such file or directory"
        for _ in range(2):
            with peer(path):
                assert await ask(client, "Echo", b"a") == b"a"
            with pytest.raises(PeerAway):
                await ask(client, "Echo")


async def test_a_connection_that_broke_while_idle_costs_no_answer(path: Path) -> None:
    async with client_of(path) as client:
        with peer(path):
            assert await ask(client, "Echo", b"a") == b"a"
        with peer(path):
            assert await ask(client, "Echo", b"b") == b"b"


async def test_too_large_a_question_is_the_callers_mistake(path: Path) -> None:
    async with client_of(path) as client:
        with pytest.raises(ValueError, match="at most 1048571"):
            await ask(client, "Echo", b"x" * (1 << 20))


@asynccontextmanager
async def saying(path: Path, *, first: bytes, then_close: bool) -> AsyncGenerator[Sized]:
    """A server that sends `first` to each client and nothing else; yields the connections."""
    came: list[asyncio.Task[None] | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came.append(asyncio.current_task())
        await reader.read(10)
        writer.write(first)
        if not then_close:
            await reader.read()
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()

    server = await asyncio.start_unix_server(serve, str(path))
    try:
        yield came
    finally:
        server.close()
        await asyncio.gather(*(each for each in came if each is not None))
        await server.wait_closed()


WRONG = {
    "nothing": b"",
    "HTTP/1": b"HTTP/1.1 400 Bad Request\r\n\r\n" + b"x" * 100,
    "a huge frame": FRAME + b"\xff\xff\xff\0\0\0\0\0\1",
    "headers that cannot be read": FRAME + b"\0\0\2\1\4\0\0\0\1\xff\xff",
    "a continuation of nothing": FRAME + b"\0\0\0\x09\4\0\0\0\1",
    "headers in pieces with data between": FRAME + b"\0\0\0\1\0\0\0\0\1" + b"\0\0\0\0\0\0\0\0\1",
    "a reset that is too short": FRAME + b"\0\0\1\3\0\0\0\0\1\0",
    "settings that are too short": b"\0\0\5\4\0\0\0\0\0\0\0\0\0\0",
    "padding that is too long": FRAME + b"\0\0\0\0\x08\0\0\0\1",
    "goodbye": FRAME + b"\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\2",
    "a reset": FRAME + b"\0\0\4\3\0\0\0\0\1\0\0\0\2",
    "an answer without status": FRAME + b"\0\0\1\1\5\0\0\0\1\x88",
    "data without headers": FRAME + b"\0\0\3\0\1\0\0\0\1abc",
}


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("then_close", [True, False])
async def test_whatever_a_peer_says_it_is_an_error_in_time(what: str, then_close: bool, path: Path) -> None:  # noqa: FBT001
    async with client_of(path) as client, saying(path, first=WRONG[what], then_close=then_close) as came:
        with pytest.raises(CriError):
            await ask(client, "Echo", deadline_s=0.3)
        client.close()
        assert 1 <= len(came) <= 2, "once more on a fresh connection, and no oftener"


@pytest.mark.parametrize(("what", "times"), [("a reset", 1), ("goodbye before it", 2)])
async def test_what_does_more_when_asked_twice_is_repeated_only_where_it_was_not_begun(
    what: str, times: int, path: Path
) -> None:
    said = {**WRONG, "goodbye before it": FRAME + b"\0\0\x08\7\0\0\0\0\0\0\0\0\0\0\0\0\0"}
    async with client_of(path) as client, saying(path, first=said[what], then_close=False) as came:
        with pytest.raises(PeerAway):
            await client.call("/test.Service/Create", b"", deadline_s=600.0, repeatable=False)
        client.close()
        assert len(came) == times


class Peer:
    """The client's half of a connection, without a socket, and its output."""

    def __init__(self, body: bytes) -> None:
        self.half = ClientHalf()
        self.half.take()
        self.half.ask(header_block({":path": "/x"}), body, asyncio.get_running_loop().create_future())

    def says(self, what: bytes = b"") -> list[int]:
        """The sizes of the DATA frames that it sends in response."""
        self.half.receive(what)
        out, at, sizes = self.half.take(), 0, []
        while at < len(out):
            size = frames.length(out, at)
            if out[at + 3] == frames.DATA:
                sizes.append(size)
            at += frames.HEADER_BYTES + size
        return sizes


async def test_a_large_question_waits_for_the_windows_of_its_peer() -> None:
    peer = Peer(b"x" * 100_000)
    assert peer.says() == [16_384, 16_384, 16_384, 16_383]
    assert peer.says(frames.window_update(0, 50_000)) == []
    assert peer.says(frames.window_update(1, 10)) == [10]
    grown = frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + (65_535 + 20_000).to_bytes(4, "big"))
    assert peer.says(grown) == [16_384, 3_616]
    shrunk = frames.frame(frames.SETTINGS, 0, 0, b"\0\4" + (1).to_bytes(4, "big"))
    assert peer.says(shrunk + frames.window_update(1, 85_534)) == []
    assert peer.says(frames.window_update(1, 14_455) + frames.window_update(0, 100)) == [14_455]


def test_headers_can_be_sent_again_to_a_peer_that_remembers_none() -> None:
    decoder, block = hpack.Decoder(), header_block({":path": "/x", "te": "trailers"})
    decoder.max_allowed_table_size = 0
    for _ in range(2):
        assert decoder.decode(block, raw=True) == [(b":path", b"/x"), (b"te", b"trailers")]
