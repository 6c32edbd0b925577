"""A process that breaks the protocol harms only itself."""

from __future__ import annotations

import os
import signal
import socket
import time
from contextlib import ExitStack

import pytest

from isolation.broker.workers import Worker, workers
from partage_isolation.ledger.account import Amounts
from partage_isolation.ledger.ledger import MOST_PROCESSES
from partage_isolation.wire import packets as wire
from partage_isolation.wire.packets import Flag, Result, What
from rig.client.wait import found
from support.broker_client import Client
from support.isolated import Contained, Isolated, until
from support.procfs import cpu_s, descriptors
from support.sockets import connected

pytestmark = pytest.mark.slow
MIB = 1 << 20


def result_of(packet: bytes) -> int:
    read = wire.read(packet)
    assert read is not None
    return read.result


def is_closed(peer: socket.socket) -> bool:
    try:
        return peer.recv(100) == b""
    except ConnectionResetError:
        return True


@pytest.mark.parametrize("length", [1, 32, 63, 65, 100, 4096])
def test_a_packet_of_another_length_ends_its_connection(container: Contained, length: int) -> None:
    with container.client() as client, connected(container.socket) as hostile:
        hostile.send(b"x" * length)
        assert is_closed(hostile)
        assert client.lend(MIB)


@pytest.mark.parametrize(
    "what", [0, 13, 31, What.HELLO, What.RECALL, What.REPORT, What.PING, What.PONG, What.LINE, 71, 0x8001, 0xFFFF]
)
def test_what_is_no_question_is_wrong(container: Contained, what: int) -> None:
    with container.client() as client:
        assert client.ask(what).result == Result.WRONG
        assert client.lend(MIB)


def test_nothing_is_answered_before_hello(container: Contained) -> None:
    with connected(container.socket) as hostile:
        for what in What:
            if what is not What.HELLO:
                hostile.send(wire.question(what, card=0))
                assert result_of(hostile.recv(100)) == Result.WRONG
        hostile.send(b"\x02\x00" + wire.question(What.HELLO)[2:])  # of another version
        assert result_of(hostile.recv(100)) == Result.WRONG


def test_tokens_of_others_and_of_nobody_are_unknown(container: Contained) -> None:
    with workers(container, 1) as (victim,):
        stolen = victim.do("client.token")
        tokens = [(token, flags) for token in (stolen, os.urandom(16)) for flags in (0, Flag.SIGNALS)]
        for token, flags in (*tokens, (wire.NO_TOKEN, Flag.SIGNALS)):
            with connected(container.socket) as hostile:
                hostile.send(wire.question(What.HELLO, flags=flags, body=wire.hello_body(token)))
                assert result_of(hostile.recv(100)) == Result.UNKNOWN
        assert victim.do("client.take(1 << 20)")


def test_a_token_of_another_container_is_unknown(place: Isolated, container: Contained) -> None:
    other = place.prepare(MIB)
    with container.client() as client, connected(other.socket) as hostile:
        hostile.send(wire.question(What.HELLO, body=wire.hello_body(client.token)))
        assert result_of(hostile.recv(100)) == Result.UNKNOWN


def test_descriptors_that_are_sent_do_not_stay_open(place: Isolated, container: Contained) -> None:
    with container.client() as client, open("/dev/null", "rb") as null:  # noqa: PTH123
        before = descriptors(place.broker.pid)
        for _ in range(50):
            packet = wire.question(What.AMOUNTS, card=0, body=wire.amounts_body(Amounts(0, 0)))
            socket.send_fds(client.calls, [packet], [null.fileno()] * 100)
        assert client.lend(MIB)
        # The broker opens a descriptor or two for a moment, such as a file of /proc.
        until(lambda: descriptors(place.broker.pid) == before)


def test_one_that_does_not_read_is_let_go_and_nobody_waits_for_it(place: Isolated, container: Contained) -> None:
    other = place.prepare(MIB)
    with container.client() as hostile, other.client() as client:
        hostile.calls.setblocking(False)

        def is_let_go() -> bool:
            try:
                hostile.calls.send(wire.question(What.VIEW, card=0))
            except BlockingIOError:
                assert client.lend(0)
            except (BrokenPipeError, ConnectionResetError):
                return True
            return False

        found("it is let go", is_let_go, every_s=0)
        assert client.lend(0)


def test_a_crowd_of_processes_meets_an_answer(place: Isolated, container: Contained) -> None:
    """Clients in one process reconnect each time, so these are real processes."""
    other = place.prepare(MIB)
    crowd: list[int] = []
    told, tell = os.pipe()
    go, hold = os.pipe()
    try:
        for _ in range(MOST_PROCESSES + 44):
            pid = os.fork()
            if pid == 0:
                _in_the_crowd(container, tell, go, hold)
            crowd.append(pid)
        results = b""
        while len(results) < len(crowd):
            results += os.read(told, 1000)
        assert results.count(Result.OK) == MOST_PROCESSES
        assert results.count(Result.FULL) == 44
        with other.client() as client:
            assert client.lend(MIB)
    finally:
        os.close(hold)
        for pid in crowd:
            os.waitpid(pid, 0)
        for descriptor in (told, tell, go):
            os.close(descriptor)
    until(lambda: not container.told().processes)
    with container.client() as client:
        assert client.lend(MIB)


def _in_the_crowd(container: Contained, tell: int, go: int, hold: int) -> None:
    """Report the result and wait until the pipe is closed."""
    result = 255
    try:
        os.close(hold)
        client = Client(container.socket)
        result = int(client.hello(signals=False))
    finally:
        os.write(tell, bytes([result]))
        os.read(go, 1)
        os._exit(0)


def test_connections_that_say_nothing_are_not_all_taken(place: Isolated, container: Contained) -> None:
    before = descriptors(place.broker.pid)
    with ExitStack() as stack:
        for _ in range(600):
            stack.enter_context(_at_last(container))
        place.told()
        assert descriptors(place.broker.pid) - before <= 2 * MOST_PROCESSES + 10
    with container.client() as client:
        assert client.lend(MIB)


def _at_last(container: Contained) -> socket.socket:
    """The listen backlog may be full for a moment."""
    while True:
        try:
            return connected(container.socket)
        except BlockingIOError:
            time.sleep(0.001)


def test_a_stopped_process_with_credit_costs_its_siblings_one_wait(container: Contained) -> None:
    with workers(container, 2) as (stopped, other):
        assert stopped.do("client.take(100 << 20)")
        stopped.send(signal.SIGSTOP)
        assert not other.do("client.take(1024 << 20)")
        assert other.do("client.take(800 << 20)")
        for _ in range(20):
            assert not other.do("client.take(300 << 20)")
        stopped.send(signal.SIGCONT)
        assert stopped.do("client.lend(100 << 20)")


def test_a_flood_is_rested_and_others_are_answered(place: Isolated, container: Contained) -> None:
    other = place.prepare(64 * MIB)
    with Worker(container) as flooder, other.client() as victim:
        assert flooder.do("hello()") == 0
        flooder.say("[client.returned(0) for _ in range(200000)] and None")
        for _ in range(300):
            assert victim.lend(MIB)
        assert not flooder.has_answered()  # 200 000 packets take it more than a minute


@pytest.mark.parametrize(
    "begins",
    [
        pytest.param("flood_begins(200)", id="a crowd of connections, each of which has a process inspected"),
        pytest.param("hello() or growth_begins(500)", id="packets that change much"),
    ],
)
def test_whatever_costs_the_broker_most_is_bounded(place: Isolated, container: Contained, begins: str) -> None:
    other = place.prepare(64 * MIB)
    with Worker(container) as hostile, other.client() as victim:
        hostile.do(begins)
        before = cpu_s(place.broker.pid)
        began = time.monotonic()
        while time.monotonic() - began < 2:
            assert victim.lend(MIB)
            time.sleep(0.005)
        assert cpu_s(place.broker.pid) - before < 0.5 * (time.monotonic() - began)
        hostile.kill()
