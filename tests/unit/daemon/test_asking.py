"""A daemon's HTTP answers; no client can block or exhaust the server."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import re
import select
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from partage_base.acceptor import MOST_OF_ONE, Guest
from partage_base.daemon import web
from partage_base.daemon.errors import CannotListen
from partage_base.daemon.health import Health
from partage_base.daemon.metrics import Metrics
from support.kube import until
from support.loops import LOOPS
from unit.daemon.processes import GUARD_S, RunningDaemon, run_to_end, write_script

Where = tuple[str, int]
BEHIND = 128
"""The number of earlier connections that send nothing."""
_ANY_PORT = ("--metrics-address", "127.0.0.1:0")


def _get(address: str, path: str, *, method: str = "GET") -> tuple[int, str]:
    host, _, port = address.rpartition(":")
    connection = http.client.HTTPConnection(host, int(port), timeout=GUARD_S)
    connection.request(method, path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.slow
def test_a_daemon_answers_while_it_starts_runs_and_stops(tmp_path: Path) -> None:
    flag = tmp_path / "go"
    wait = f"\n        while not Path({str(flag)!r}).exists(): await asyncio.sleep(0.005)\n        "
    script = write_script(tmp_path, start=f"log.info('in start'){wait}", stop=f"log.info('in stop'){wait}")
    with RunningDaemon(script, *_ANY_PORT) as daemon:
        address = daemon.until("metrics are served")["address"]
        daemon.until("in start")
        assert _get(address, "/healthz") == (200, "ok\n")
        assert _get(address, "/readyz") == (503, "start: still starting\n")
        flag.touch()
        daemon.until("ready")
        assert _get(address, "/readyz") == (200, "ok\n")
        flag.unlink()
        daemon.send(signal.SIGTERM)
        daemon.until("in stop")
        assert _get(address, "/healthz") == (200, "ok\n")
        assert _get(address, "/readyz") == (503, "stop: stopping\n")
        flag.touch()
        assert daemon.end() == 0


@pytest.mark.slow
def test_metrics_are_served_with_the_build(tmp_path: Path) -> None:
    with RunningDaemon(write_script(tmp_path), *_ANY_PORT) as daemon:
        status, text = _get(daemon.until("metrics are served")["address"], "/metrics")
    assert status == 200
    assert re.search(r'^partage_build_info\{daemon="crishim",version="[^"]+"\} 1.0$', text, re.MULTILINE)


@pytest.mark.slow
def test_no_port_is_open_unless_asked_for(tmp_path: Path) -> None:
    with RunningDaemon(write_script(tmp_path)) as daemon:
        daemon.until("ready")
        assert "metrics are served" not in daemon.events


@pytest.mark.slow
def test_a_port_in_use_ends_the_start_with_one_line_and_starts_nothing(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        done = run_to_end(write_script(tmp_path), "--metrics-address", address)
    assert done.returncode == 1
    assert f"cannot listen on {address}: " in done.stderr
    assert "Address already in use" in done.stderr
    assert "traceback" not in done.stderr
    assert "starting" not in done.stderr


async def test_one_that_takes_over_serves_as_soon_as_its_predecessor_has_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "_TRY_EVERY_S", 0.01)
    async with web.Web("127.0.0.1:0", metrics=Metrics("old"), health=Health()) as old:
        address = f"127.0.0.1:{old.port}"
        async with web.Web(address, metrics=Metrics("new"), health=Health(), waits=True) as new:
            await asyncio.sleep(0.05)
            assert new.port == 0
            await old.__aexit__(None, None, None)
            await until(lambda: new.port)
            reader, writer = await asyncio.open_connection("127.0.0.1", new.port)
            writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
            assert b'daemon="new"' in await reader.read()
            writer.close()


async def test_one_that_waits_for_its_port_ends_without_it() -> None:
    async with web.Web("127.0.0.1:0", metrics=Metrics("old"), health=Health()) as old:
        address = f"127.0.0.1:{old.port}"
        async with web.Web(address, metrics=Metrics("new"), health=Health(), waits=True):
            pass


@pytest.mark.parametrize("address", ["256.0.0.1:0", "é..é:1", "[::g]:1", "192.0.2.1:9400"])
async def test_an_address_that_is_not_ours_is_an_expected_error(address: str) -> None:
    with pytest.raises(CannotListen, match="cannot listen on"):
        await web.Web(address, metrics=Metrics("test"), health=Health()).__aenter__()


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("test")


@pytest.fixture
def health() -> Health:
    return Health()


@pytest.fixture
async def where(metrics: Metrics, health: Health) -> AsyncIterator[Where]:
    """A server's address."""
    async with web.Web("127.0.0.1:0", metrics=metrics, health=health) as server:
        yield "127.0.0.1", server.port


async def _heard(reader: asyncio.StreamReader) -> bytes:
    """Reads until the peer closes or resets the connection."""
    heard = bytearray()
    with contextlib.suppress(ConnectionResetError):
        while piece := await reader.read(1 << 16):
            heard += piece
    return bytes(heard)


async def _replies(where: Where, request: bytes) -> bytes:
    """Everything that a server sends after `request` until it closes."""
    reader, writer = await asyncio.open_connection(*where)
    writer.write(request)
    heard = await _heard(reader)
    writer.close()
    return heard


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /healthz HTTP/1.1\r\n\r\n", 200),
        (b"GET /healthz?verbose HTTP/1.0\r\nHost: a\r\n\r\n", 200),
        (b"GET / HTTP/1.1\r\n\r\n", 404),
        (b"GET /\xff HTTP/1.1\r\n\r\n", 404),
        (b"POST /metrics HTTP/1.1\r\n\r\n", 405),
        (b"GET /metrics\r\n\r\n", 400),
        (b"GET /metrics HTTP/2\r\n\r\n", 400),
        (b"\x16\x03\x01\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
    ],
)
async def test_every_request_gets_one_answer_at_once(
    where: Where, request_: bytes, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "DEADLINE_S", 3600)
    assert (await _replies(where, request_)).startswith(f"HTTP/1.1 {status} ".encode())


async def test_a_daemon_may_have_pages_of_its_own(metrics: Metrics, health: Health) -> None:
    async def page() -> web.Response:
        return web.Response(200, b"{}", "application/json")

    async def broken() -> web.Response:
        raise RuntimeError("a defect")

    pages = {"/own": page, "/broken": broken}
    async with web.Web("127.0.0.1:0", metrics=metrics, health=health, pages=pages) as server:
        where = ("127.0.0.1", server.port)
        assert (await _replies(where, b"GET /own HTTP/1.1\r\n\r\n")).endswith(b"\r\n\r\n{}")
        assert (await _replies(where, b"GET /broken HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 500 ")
        assert b"/readyz, /broken, /own\n" in await _replies(where, b"GET /other HTTP/1.1\r\n\r\n")


async def test_a_head_request_gets_the_length_and_no_body(where: Where) -> None:
    head, _, body = (await _replies(where, b"HEAD /healthz HTTP/1.1\r\n\r\n")).partition(b"\r\n\r\n")
    assert b"Content-Length: 3" in head
    assert body == b""


async def test_a_part_that_is_dead_fails_liveness_and_readiness_with_the_reason(where: Where, health: Health) -> None:
    health.dead("nvml", "a call never returned")
    for path in (b"/healthz", b"/readyz"):
        reply = await _replies(where, b"GET " + path + b" HTTP/1.1\r\n\r\n")
        assert reply.startswith(b"HTTP/1.1 503 ")
        assert reply.endswith(b"nvml: a call never returned\n")


def test_conditions_hold_again_when_they_are_said_to(health: Health) -> None:
    health.unready("containerd", "connection refused")
    health.dead("nvml", "hangs")
    assert health.against_ready == {"containerd": "connection refused", "nvml": "hangs"}
    health.ready("containerd")
    health.alive("nvml")
    assert (health.against_ready, health.against_alive) == ({}, {})


async def test_a_page_that_can_not_be_made_is_an_error_and_not_the_end(where: Where, metrics: Metrics) -> None:
    def broken() -> float:
        raise OSError("the peer is gone")

    metrics.read_gauge("partage_broken", "Of a peer that is gone.", broken)
    assert (await _replies(where, b"GET /metrics HTTP/1.1\r\n\r\n")).startswith(b"HTTP/1.1 500 ")


async def test_a_request_without_end_is_dropped(where: Where, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "DEADLINE_S", 0.05)
    assert await _replies(where, b"GET /metrics HTTP/1.1\r\n") == b""


async def test_a_request_that_is_too_long_is_dropped(where: Where) -> None:
    reader, writer = await asyncio.open_connection(*where)
    writer.write(b"GET /" + b"a" * 10 * web.MOST_REQUEST_BYTES)
    assert await _heard(reader) == b""
    writer.close()


def _fill(metrics: Metrics) -> None:
    """Adds more output than the kernel buffers for a slow reader."""
    gauge = metrics.gauge("partage_test_pods", "Test.", labels=("pod",))
    for number in range(2000):
        gauge.labels(pod="x" * 5000 + str(number)).set(1)


async def test_a_long_page_arrives_whole(where: Where, metrics: Metrics) -> None:
    _fill(metrics)
    for request in (b"GET /metrics HTTP/1.1\r\n\r\n", b"GET /metrics HTTP/1.1\r\n\r\nand more"):
        assert (await _replies(where, request)).endswith(metrics.page())


class _Noting(web.Web):
    """Counts ended connections."""

    over = 0

    async def _converse(self, guest: Guest) -> None:
        try:
            await super()._converse(guest)
        finally:
            self.over += 1


async def test_a_reader_that_does_not_read_is_dropped(
    metrics: Metrics, health: Health, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(metrics)
    monkeypatch.setattr(web, "DEADLINE_S", 0.1)
    async with _Noting("127.0.0.1:0", metrics=metrics, health=health) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await until(lambda: server.over)
        assert len(await _heard(reader)) < len(metrics.page())
        writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("loop", LOOPS)
async def test_probes_are_answered_whoever_rests_on_the_port_and_comes_back_at_once(where: Where, loop: str) -> None:
    rested = 0

    async def rest() -> None:
        nonlocal rested
        while True:
            reader, writer = await asyncio.open_connection(*where)
            rested += 1
            try:
                with contextlib.suppress(OSError):
                    await reader.read(1)
            finally:
                writer.transport.abort()

    resting = [asyncio.create_task(rest()) for _ in range(3 * MOST_OF_ONE)]
    await until(lambda: rested > len(resting))
    answers = [await _asked_once(where) for _ in range(30)]
    for each in resting:
        each.cancel()
    await asyncio.wait(resting)
    await asyncio.sleep(0.01)
    assert answers == [b"ok\n"] * 30


@pytest.mark.parametrize("loop", LOOPS)
async def test_a_probe_behind_many_is_answered_after_few_turns_of_the_loop(where: Where, loop: str) -> None:
    """This holds however long each iteration takes while the daemon is busy."""
    hogs = [socket.create_connection(where) for _ in range(BEHIND)]
    turns = 0
    with socket.create_connection(where) as probe:
        probe.sendall(b"GET /healthz HTTP/1.1\r\n\r\n")
        while not select.select([probe], [], [], 0)[0]:
            await asyncio.sleep(0)
            turns += 1
        assert probe.recv(1024).endswith(b"ok\n")
    for hog in hogs:
        hog.close()
    assert turns < BEHIND / 2


async def _asked_once(where: tuple[str, int]) -> bytes:
    reader, writer = await asyncio.open_connection(*where)
    writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
    heard = await _heard(reader)
    writer.transport.abort()
    return heard.partition(b"\r\n\r\n")[2]


async def test_of_too_many_askers_at_once_the_oldest_is_dropped(where: Where) -> None:
    idle = [await asyncio.open_connection(*where) for _ in range(MOST_OF_ONE)]
    reader, writer = await asyncio.open_connection(*where)
    assert await _heard(idle[0][0]) == b""
    writer.write(b"GET /healthz HTTP/1.1\r\n\r\n")
    assert (await _heard(reader)).endswith(b"ok\n")
    assert not any(other.at_eof() for other, _ in idle[1:])
    for _, other in [*idle, (reader, writer)]:
        other.close()


async def test_of_those_who_read_slowly_what_is_too_much_the_oldest_is_dropped(
    where: Where, metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fill(metrics)
    page = metrics.page()
    monkeypatch.setattr(web, "MOST_HELD_BYTES", 3 * len(page) + 10_000)
    slow: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
    for _ in range(4):
        reader, writer = await asyncio.open_connection(*where, limit=1)
        writer.write(b"GET /metrics HTTP/1.1\r\n\r\n")
        await reader.readexactly(1)
        slow.append((reader, writer))
    whole = [len(await _heard(reader)) >= len(page) for reader, _ in slow]
    assert whole == [False, True, True, True]
    for _, writer in slow:
        writer.close()
