"""Whatever a process sends or does: simgpud survives, keeps nothing of it, and serves the others."""

from __future__ import annotations

import os
import random
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.users import User, small_node, totals, until, used
from simgpu.daemon.wire import BLOCK, PROTOCOL, SOCKET, Ask, Caller, Result, reply_of, request
from support.procfs import descriptors
from support.sockets import connected

_LARGEST = 4096
_MOST_CONNECTIONS = 64
_ROWS = 64
_AT_ONCE = 50
_FLOOD = """
import socket
peer = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
peer.connect("socket")
print("flooding", flush=True)
try:
    while True:
        peer.send(b"x" * 48)
        {read}
except OSError:
    print("hung up", flush=True)
"""


def _said(peer: socket.socket, packet: bytes) -> Result:
    peer.send(packet)
    return reply_of(peer.recv(_LARGEST)).result


@pytest.mark.parametrize(
    "packet",
    [
        b"x",
        request(Ask.HELLO, id=PROTOCOL)[:-1],
        request(Ask.HELLO, id=PROTOCOL) + b"x",
        b"x" * _LARGEST,
        b"x" * 100_000,
        request(0),
        request(11),
        request(2**32 - 1),
        request(Ask.HELLO, id=PROTOCOL + 1),
        request(Ask.ATTACH),
        request(Ask.PROCESSES),
    ],
)
def test_what_is_no_request_or_comes_before_a_greeting_is_refused(node: SimulatedNode, packet: bytes) -> None:
    with connected(node.root / SOCKET) as peer:
        assert _said(peer, packet) == Result.MISUSED
        assert _said(peer, request(Ask.HELLO, id=PROTOCOL)) == Result.OK


def test_descriptors_that_nobody_asked_for_are_closed(node: SimulatedNode) -> None:
    before = descriptors(node.pid)
    with Caller(node.root) as caller, open(os.devnull) as null:  # noqa: PTH123 - a descriptor is wanted
        for ask in (Ask.HELLO, Ask.USED, Ask.PROCESSES, Ask.SHARE, 77):
            for fd in caller.call(ask, id=PROTOCOL, fds=[null.fileno()] * 100).fds:
                os.close(fd)
        assert descriptors(node.pid) == before + 2, "the connection, and the process"
    until(lambda: descriptors(node.pid) == before)


def test_who_does_not_read_replies_is_hung_up_on_and_others_are_served(node: SimulatedNode) -> None:
    with _flooding(node, read="") as flood, Caller(node.root) as caller:
        assert flood.stdout
        while b"hung up" not in flood.stdout.readline():
            assert caller.call(Ask.USED).result == Result.OK


def test_who_asks_without_end_does_not_keep_others_from_being_served(node: SimulatedNode) -> None:
    with _flooding(node, read="peer.recv(48)") as flood, Caller(node.root) as caller:
        assert flood.stdout
        assert flood.stdout.readline() == b"flooding\n"
        assert all(caller.call(Ask.USED).result == Result.OK for _ in range(500))
        flood.kill()


def _flooding(node: SimulatedNode, *, read: str) -> subprocess.Popen[bytes]:
    program = [sys.executable, "-c", _FLOOD.format(read=read)]
    return subprocess.Popen(program, cwd=(node.root / SOCKET).parent, stdout=subprocess.PIPE)


def test_a_process_has_so_many_connections_and_no_more(node: SimulatedNode) -> None:
    peers = [connected(node.root / SOCKET) for _ in range(_MOST_CONNECTIONS + 1)]
    try:
        assert {_said(peer, request(Ask.HELLO, id=PROTOCOL)) for peer in peers[:-1]} == {Result.OK}
        assert peers[-1].recv(1) == b"", "the last one was hung up on"
    finally:
        for peer in peers:
            peer.close()
    until(lambda: totals(node)["clients"] == 0)


def test_who_leaves_without_a_word_is_forgotten(node: SimulatedNode) -> None:
    for _ in range(50):
        connected(node.root / SOCKET).close()
        with connected(node.root / SOCKET) as peer:
            peer.send(request(Ask.HELLO, id=PROTOCOL))  # and the reply, with its descriptors, is never received
    until(lambda: totals(node) == {"cards": 1, "processes": 0, "clients": 0, "pieces": 0, "kept": 0})


@pytest.mark.slow
def test_the_row_after_the_last_is_refused(tmp_path: Path) -> None:
    with small_node(tmp_path, context_mib=1) as node:
        users: list[User] = []
        try:
            users += [User(node.root) for _ in range(_ROWS + 1)]
            replies = [user.ask(Ask.ATTACH) for user in users]
            assert [reply.row for reply in replies[:-1]] == list(range(_ROWS))
            assert replies[-1].result == Result.NO_ROOM
            users[5].kill()
            until(lambda: totals(node)["processes"] == _ROWS)
            assert users[-1].ask(Ask.ATTACH).row == 5
            assert len(users[-1].ask(Ask.PROCESSES).processes) == _AT_ONCE
            assert len(users[-1].ask(Ask.PROCESSES, id=_AT_ONCE).processes) == _ROWS - _AT_ONCE
        finally:
            for user in users:
                user.kill()


def test_packets_of_chance_are_all_answered(node: SimulatedNode) -> None:
    chance = random.Random(0)  # noqa: S311 - it makes inputs, no secrets
    with Caller(node.root) as caller:
        for _ in range(3000):
            packet = chance.randbytes(chance.choice([1, 47, 48, 48, 48, 49, 200]))
            if chance.random() < 0.8:
                packet = request(chance.randrange(12), card=chance.randrange(2), size=chance.randrange(9)) + packet[48:]
            for fd in caller.exchange(packet).fds:
                os.close(fd)
        assert caller.call(Ask.USED).result == Result.OK


def test_take_and_give_without_end_by_two_processes_sum_to_nothing(node: SimulatedNode) -> None:
    with Caller(node.root) as one, Caller(node.root) as other:
        for n in range(500):
            piece = one.call(Ask.TAKE, kind=BLOCK, size=n + 1).id
            assert other.call(Ask.GIVE, id=piece).result == Result.OK, "connections of a process are one holder"
    assert used(node) == 0
