"""simgpud's life: one for each root, a clean end on demand, and no obstacle to a successor after a crash."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from partage_simgpu.simgpud import LOCK
from rig.patience import patience_s
from simgpu.daemon.node_file import GONE, RUNNING
from simgpu.daemon.users import User, until, used
from simgpu.daemon.wire import SOCKET, Ask, Caller, Result
from support.simgpu import built

CONF = "etc/simgpu/node.conf"
CONTROL = "run/simgpu/control"


def _run(root: Path) -> subprocess.CompletedProcess[str]:
    """Run one that is expected to end by itself."""
    return subprocess.run(
        [built() / "simgpud", root], capture_output=True, text=True, timeout=patience_s(), check=False
    )


def test_a_second_one_on_the_same_root_ends_with_one_line(node: SimulatedNode) -> None:
    second = _run(node.root)
    assert second.returncode == 1
    assert second.stderr == f"simgpud: {node.root}/{LOCK}: another simgpud serves this node; end it first\n"
    with Caller(node.root) as caller:
        assert caller.node().state == RUNNING


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_it_cleanly(node: SimulatedNode, number: signal.Signals) -> None:
    with Caller(node.root) as caller:
        node.send(number)
        until(lambda: caller.node().state == GONE)
        assert not caller.peer.recv(1)
    node.stop()
    assert not (node.root / SOCKET).exists()
    assert not (node.root / CONTROL).exists()


def test_after_a_crash_the_next_one_serves_on_the_same_root(node: SimulatedNode) -> None:
    with Caller(node.root) as before:
        before.call(Ask.ATTACH)
        node.kill()
        node.start()
        with pytest.raises((ConnectionError, BrokenPipeError)):
            before.call(Ask.USED)
    with Caller(node.root) as after:
        assert after.call(Ask.ATTACH).result == Result.OK
        assert used(node) == 64 << 20


@pytest.mark.slow
def test_a_stopped_simgpud_makes_callers_wait_and_nothing_else(node: SimulatedNode) -> None:
    with User(node.root) as user:
        node.send(signal.SIGSTOP)
        user.begin(Ask.TAKE, kind=1, size=5)
        node.send(signal.SIGCONT)
        assert user.answer().result == Result.OK


def test_it_needs_a_root(tmp_path: Path) -> None:
    assert "usage: simgpud ROOT" in subprocess.run([built() / "simgpud"], capture_output=True, text=True).stderr  # noqa: PLW1510
    missing = _run(tmp_path / "missing")
    assert (missing.returncode, missing.stderr) == (1, f"simgpud: {tmp_path}/missing/: No such file or directory\n")


def test_both_sockets_have_the_rights_that_they_need(node: SimulatedNode) -> None:
    assert (node.root / SOCKET).stat().st_mode & 0o777 == 0o666
    assert (node.root / CONTROL).stat().st_mode & 0o777 == 0o600
