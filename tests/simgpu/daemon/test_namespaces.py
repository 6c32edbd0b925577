"""Processes see each other's pids as numbered in their own pid namespace, and only those visible there."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.daemon.users import User, status, until, used
from simgpu.daemon.wire import Ask

_INSIDE = ("unshare", "--pid", "--fork", "--kill-child")
_DEEPER = (*_INSIDE, *_INSIDE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("unshare") is None
        or subprocess.run([*_INSIDE, "true"], check=False, capture_output=True).returncode != 0,
        reason="needs the right to make a pid namespace",
    ),
]


def _pids(viewer: User) -> list[int]:
    return [pid for pid, *_ in viewer.ask(Ask.PROCESSES).processes]


def test_each_sees_what_its_namespace_has(node: SimulatedNode) -> None:
    with (
        User(node.root) as host,
        User(node.root, through=_INSIDE) as inside,
        User(node.root, through=_DEEPER) as deeper,
        User(node.root, through=_INSIDE) as beside,
    ):
        users = (host, inside, deeper, beside)
        for user in users:
            user.ask(Ask.ATTACH)
        in_host = [process.pid for process in status(node).processes]
        assert _pids(host) == in_host
        assert in_host[0] == host.pid == host.own_pid
        assert len(set(in_host)) == len(users)
        for row, user in enumerate(users[1:], 1):
            assert user.own_pid != in_host[row]
            assert _pids(user) == [user.own_pid if n == row else 0 for n in range(len(users))]


def test_an_outer_namespace_sees_processes_of_inner_ones(node: SimulatedNode) -> None:
    """Nested namespaces: the outer has a number for the inner, the host another."""
    with User(node.root, through=_INSIDE) as outer:
        outer.ask(Ask.ATTACH)
        through = ("nsenter", f"--pid=/proc/{_child_of(outer.pid)}/ns/pid", *_INSIDE)
        with User(node.root, through=through) as inner:
            inner.ask(Ask.ATTACH)
            seen = _pids(outer)
            assert seen[0] == outer.own_pid
            assert seen[1] not in {0, inner.own_pid, status(node).processes[1].pid}
            assert _pids(inner) == [0, inner.own_pid]


def test_a_piece_is_of_the_process_as_its_opener_sees_it(node: SimulatedNode) -> None:
    with User(node.root) as host, User(node.root, through=_INSIDE) as inside:
        token = inside.ask(Ask.SHARE, id=inside.take(1)).token
        opened = host.ask(Ask.OPEN, token=token)
        assert opened.pid == _child_of(inside.pid) != inside.own_pid
        assert inside.ask(Ask.OPEN, token=host.ask(Ask.SHARE, id=host.take(1)).token).pid == 0


def test_memory_returns_when_a_namespace_is_killed(node: SimulatedNode) -> None:
    with User(node.root, through=_INSIDE) as inside:
        inside.ask(Ask.ATTACH)
        assert used(node) > 0
        inside.kill()
        until(lambda: used(node) == 0)


def _child_of(pid: int) -> int:
    """The process that `unshare` started."""
    with open(f"/proc/{pid}/task/{pid}/children") as children:  # noqa: PTH123
        (child,) = children.read().split()
    assert int(child) != os.getpid()
    return int(child)
