"""A connection is kept, made anew when the server closed it, and repeats nothing that may have changed something."""

from __future__ import annotations

import http.client
import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import closing
from enum import Enum
from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rig.control.readiness import answers, trusting
from rig.errors import ComponentFailed
from rig.identity.identities import Identities
from rig.identity.people import ALICE
from rig.talking.connection import Connection, Request, Way

HERE = "127.0.0.1"
GET, POST = Request("GET", "/a"), Request("POST", "/a", b"{}")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
BAD = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 8\r\n\r\n[-]etcd "


class Does(Enum):
    """What the server does with a request that it has read."""

    ANSWER = 1
    ANSWER_AND_CLOSE = 2
    CLOSE = 3
    FAIL = 4


class Server:
    """Does one thing after another, over as many connections as it takes; then answers."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.does: list[Does] = []
        self.requests: list[str] = []
        self.connections = 0
        self.is_closed = threading.Event()
        self._context = context
        self._socket = socket.create_server((HERE, 0))
        self.port: int = self._socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def stop(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                raw, _ = self._socket.accept()
            except OSError:
                return
            self.connections += 1
            with raw:
                try:
                    with self._context.wrap_socket(raw, server_side=True) as stream:
                        self._talk(stream)
                except OSError:  # a client that does not trust us, or has gone
                    continue
            self.is_closed.set()

    def _talk(self, stream: ssl.SSLSocket) -> None:
        with stream.makefile("rb") as reader:
            while first := reader.readline():
                headers = http.client.parse_headers(reader)
                reader.read(int(headers.get("Content-Length", "0")))
                self.requests.append(first.split()[0].decode())
                does = self.does.pop(0) if self.does else Does.ANSWER
                if does is not Does.CLOSE:
                    stream.sendall(BAD if does is Does.FAIL else OK)
                if does in (Does.CLOSE, Does.ANSWER_AND_CLOSE):
                    return


@pytest.fixture
def identities(tmp_path: Path) -> Identities:
    return Identities(tmp_path)


@pytest.fixture
def server(identities: Identities) -> Generator[Server]:
    serving = identities.server("test", ips=[IPv4Address(HERE)])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=identities.ca)
    context.load_cert_chain(serving.certificate, serving.key)
    context.verify_mode = ssl.CERT_REQUIRED
    server = Server(context)
    yield server
    server.stop()


@pytest.fixture
def connection(identities: Identities, server: Server) -> Generator[Connection]:
    with closing(Connection(way(identities, server.port))) as connection:
        yield connection


def way(identities: Identities, port: int) -> Way:
    return Way(HERE, port, trusting(identities.ca, identities.certified(ALICE)))


def test_many_requests_share_a_connection(server: Server, connection: Connection) -> None:
    assert [connection.ask(each).content for each in (GET, POST, GET)] == [b"ok"] * 3
    assert server.connections == 1


@pytest.mark.parametrize("request_", [GET, POST])
def test_a_connection_that_the_server_closed_is_made_anew(
    server: Server, connection: Connection, request_: Request
) -> None:
    server.does = [Does.ANSWER_AND_CLOSE]
    connection.ask(GET)
    assert server.is_closed.wait(5)
    assert connection.ask(request_).status == 200
    assert server.requests == ["GET", request_.method]
    assert server.connections == 2


def test_a_get_that_was_cut_off_is_asked_again(server: Server, connection: Connection) -> None:
    server.does = [Does.ANSWER, Does.CLOSE]
    connection.ask(GET)
    assert connection.ask(GET).status == 200
    assert server.requests == ["GET", "GET", "GET"]


def test_a_post_that_was_cut_off_is_not_sent_again(server: Server, connection: Connection) -> None:
    server.does = [Does.ANSWER, Does.CLOSE]
    connection.ask(GET)
    with pytest.raises(ComponentFailed, match=r"POST /a got no answer: .*it may or may not have been carried out"):
        connection.ask(POST)
    assert server.requests == ["GET", "POST"]
    assert connection.ask(POST).status == 200


def test_a_server_that_answers_nobody_is_asked_once(server: Server, connection: Connection) -> None:
    server.does = [Does.CLOSE]
    with pytest.raises(ComponentFailed, match="GET /a got no answer"):
        connection.ask(GET)
    assert server.requests == ["GET"]


def test_nobody_there_is_said_with_the_address(identities: Identities) -> None:
    with socket.create_server((HERE, 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(ComponentFailed, match=rf"^cannot reach https://{HERE}:{port}: .*refused; is it running\?$"):
        Connection(way(identities, port)).ask(GET)


def test_a_server_of_another_authority_gets_no_request(server: Server, tmp_path: Path) -> None:
    others = Identities(tmp_path / "others")
    with pytest.raises(ComponentFailed, match="CERTIFICATE_VERIFY_FAILED"):
        Connection(way(others, server.port)).ask(GET)
    assert server.requests == []


def test_readiness_is_an_answer_of_200(server: Server, identities: Identities) -> None:
    why_not = answers((HERE, server.port), "/readyz", trusting(identities.ca, identities.certified(ALICE)))
    server.does = [Does.FAIL]
    assert why_not() == "/readyz answered 500: [-]etcd "
    assert why_not() is None


def test_unreadiness_says_what_is_wrong(server: Server, identities: Identities) -> None:
    why_not = answers((HERE, server.port), "/readyz", trusting(identities.ca, identities.certified(ALICE)))
    server.does = [Does.CLOSE]
    assert f"https://{HERE}:{server.port}/readyz" in (why_not() or "")
