"""Peers that are unreachable, slow, truncating, too large or no API server. A call is sent once in every case."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from partage_base.kube import (
    ApiServer,
    KubeError,
    MalformedResponse,
    Node,
    Unreachable,
    lease_path,
    leases_path,
    node_path,
    nodes_path,
)
from rig.identity.certificates import Authority
from support.fake_api import CutShort, Drop, FakeApi, Fault, Flood, Hang, Refuse, Say
from support.kube import access_to, serving_context, until
from support.loops import LOOPS

N1 = lease_path("s", "n1")
VERBS: dict[str, Callable[[ApiServer], Awaitable[object]]] = {
    "GET": lambda server: server.get(N1, dict[str, Any]),
    "POST": lambda server: server.create(leases_path("s"), {"metadata": {"name": "n2"}}, dict[str, Any]),
    "PUT": lambda server: server.replace(N1, {"metadata": {"name": "n1", "resourceVersion": "2"}}, dict[str, Any]),
    "PATCH": lambda server: server.patch(N1, {"new": 1}, dict[str, Any]),
    "DELETE": lambda server: server.delete(N1),
}


async def failure(work: Awaitable[object]) -> KubeError:
    with pytest.raises(KubeError) as raised:
        await work
    return raised.value


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("fault", [Drop(), Drop(after_success=True), CutShort()])
async def test_a_call_whose_connection_breaks_is_not_sent_again_and_may_be_done(
    api: FakeApi, server: ApiServer, verb: str, fault: Fault, loop: str
) -> None:
    api.objects.create(leases_path("s"), {"metadata": {"name": "n1"}})
    await server.get(N1, dict[str, Any])  # so that the connection is a reused one
    api.expect(fault, method=verb)
    error = await failure(VERBS[verb](server))
    assert isinstance(error, Unreachable)
    assert error.may_be_done
    assert str(error).startswith(f"{verb} /apis/coordination.k8s.io/v1/namespaces/s/leases")
    assert len(api.asked) == 2
    await server.list(leases_path("s"), dict[str, Any])


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("of_client", [{"deadline_s": 0.2}])
async def test_a_slow_answer_ends_at_the_deadline(api: FakeApi, server: ApiServer, loop: str) -> None:
    api.expect(Hang())
    error = await failure(server.get(N1, Node))
    assert isinstance(error, Unreachable)
    assert "no whole answer within 0.2 s" in str(error)
    assert error.may_be_done
    api.release()


@pytest.mark.parametrize("of_client", [{"deadline_s": 0.2}])
async def test_a_watch_that_never_begins_ends_at_the_deadline(api: FakeApi, server: ApiServer) -> None:
    api.expect(Hang(), method="WATCH")
    error = await failure(anext(server.watch(nodes_path(), Node, since="1")))
    assert isinstance(error, Unreachable)
    api.release()


async def test_a_server_that_is_away_was_asked_nothing(api: FakeApi, server: ApiServer) -> None:
    await api.stop()
    error = await failure(server.get(node_path("n1"), Node))
    assert isinstance(error, Unreachable)
    assert not error.may_be_done
    assert str(error).startswith("GET /api/v1/nodes/n1: no connection to 127.0.0.1:")
    assert str(error).endswith(": Connection refused; is the API server up and reachable from here?")
    await api.start()
    api.expect(Say(b"{}"))
    assert await server.get(node_path("n1"), Node) == Node()


async def test_an_endless_answer_is_given_up(api: FakeApi, server: ApiServer) -> None:
    api.expect(Flood())
    assert "an answer of more than 1048576 bytes" in str(await failure(server.get(N1, Node)))
    api.expect(Flood(), method="WATCH")
    assert "a line of more than" in str(await failure(anext(server.watch(nodes_path(), Node, since="1"))))


async def test_a_redirect_is_not_followed(api: FakeApi, server: ApiServer) -> None:
    api.expect(Refuse(302, headers={"Location": f"{api.url}/login"}))
    error = await failure(server.get(N1, Node))
    assert isinstance(error, MalformedResponse)
    assert f"302 to {api.url}/login" in str(error)
    assert len(api.asked) == 1


@pytest.mark.parametrize("body", [b"", b"<html>login</html>", b"[]", b"\xff", b'{"metadata":', b"[" * 100_000])
async def test_what_is_no_object_is_nonsense(api: FakeApi, server: ApiServer, body: bytes) -> None:
    api.expect(Say(body), times=3)
    assert isinstance(await failure(server.get(N1, Node)), MalformedResponse)
    assert isinstance(await failure(server.list(nodes_path(), Node)), MalformedResponse)
    if body:
        assert isinstance(await failure(anext(server.watch(nodes_path(), Node, since="1"))), KubeError)


@asynccontextmanager
async def peer_that_says(raw: bytes) -> AsyncGenerator[str]:
    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(raw)
        writer.close()

    server = await asyncio.start_server(converse, "127.0.0.1")
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}"[:-2] + b"xx",
        b"HTTP/1.1 200 OK\r\n" + b"X-Long: " + b"x" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 999999 Odd\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_what_is_no_http_or_no_whole_answer_is_an_expected_error(raw: bytes) -> None:
    async with (
        peer_that_says(raw) as url,
        ApiServer(access_to(url), user_agent="t", deadline_s=600) as server,
    ):
        error = await failure(server.get(N1, Node))
        assert "\n" not in str(error)
        assert isinstance(await failure(server.create(leases_path("s"), {}, Node)), KubeError)


async def test_whoever_closes_ends_what_is_under_way_and_nothing_begins_after(api: FakeApi, server: ApiServer) -> None:
    api.expect(Hang())
    call = asyncio.create_task(server.get(N1, Node))
    await until(lambda: api.asked)
    await server.close()
    error = await failure(call)
    assert isinstance(error, Unreachable)
    later = await failure(server.get(N1, Node))
    assert isinstance(later, Unreachable)
    assert not later.may_be_done
    api.release()


@contextmanager
def frozen_peer(context: ssl.SSLContext) -> Generator[str]:
    """A peer that completes the handshake, reads a request and then does nothing, not even close."""
    thawed = threading.Event()

    def serve() -> None:
        accepted, _ = listening.accept()
        with context.wrap_socket(accepted, server_side=True) as spoken:
            spoken.recv(65536)
            thawed.wait()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"https://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            thawed.set()
            thread.join()


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_frozen_peer_keeps_no_connection_of_a_client_that_closes(tmp_path: Path, loop: str) -> None:
    authority = Authority("ours")
    tls = ssl.create_default_context(cadata=authority.certificate.decode())
    with frozen_peer(serving_context(authority, tmp_path)) as url:
        async with ApiServer(access_to(url, tls=tls), user_agent="t", deadline_s=0.2) as server:
            assert isinstance(await failure(server.get(N1, Node)), Unreachable)
            assert sockets_to(url) == 1
        assert sockets_to(url) == 0


def sockets_to(url: str) -> int:
    """The number of our sockets that are connected to that port."""
    port, count = int(url.rpartition(":")[2]), 0
    for entry in Path("/proc/self/fd").iterdir():
        if entry.is_symlink() and str(entry.readlink()).startswith("socket:"):
            with suppress(OSError), socket.fromfd(int(entry.name), socket.AF_INET, socket.SOCK_STREAM) as opened:
                count += opened.getpeername()[1:2] == (port,)
    return count


async def test_a_proxy_is_gone_through_and_its_no_is_told() -> None:
    async with FakeApi() as proxy:
        proxy.expect(Say(b"{}"))
        plain = access_to("http://api.example:1", proxy=proxy.url)
        async with ApiServer(plain, user_agent="t") as server:
            assert await server.get(N1, Node) == Node()
            assert proxy.asked[0].headers["Host"] == "api.example:1"
        tunnel = access_to("https://api.example:1", proxy=proxy.url)
        async with ApiServer(tunnel, user_agent="t") as server:
            error = await failure(server.get(N1, Node))
            assert isinstance(error, Unreachable)
            assert "the proxy answered 405" in str(error)


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_certificate_must_be_of_our_authority_and_for_this_name(tmp_path: Path, loop: str) -> None:
    ours, theirs = Authority("ours"), Authority("theirs")

    async def asked(authority: Authority, name: str | None) -> None:
        trusted = ssl.create_default_context(cadata=authority.certificate.decode())
        async with FakeApi(tls=serving_context(ours, tmp_path)) as api:
            api.expect(Say(b"{}"))
            access = access_to(api.url, tls=trusted, server_name=name)
            async with ApiServer(access, user_agent="t") as server:
                await server.get(N1, Node)

    await asked(ours, None)
    await asked(ours, "localhost")
    for error in (await failure(asked(theirs, None)), await failure(asked(ours, "other.example"))):
        assert isinstance(error, Unreachable)
        assert not error.may_be_done
        assert "the certificate of 127.0.0.1:" in str(error)
        assert "SSLContext" not in str(error)
