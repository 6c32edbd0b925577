"""The child may be killed at any time; once closed, no process, thread, file or mapping of it is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from partage_gpu.nvml import process
from partage_gpu.nvml.driver import Driver
from partage_gpu.nvml.facts import NodeFacts, Trouble
from partage_simgpu.node import SimulatedNode
from rig.patience import patience_s
from simgpu.discovery.asked import HASTY_S, Asked, asked, is_gone
from support.procfs import lives, status
from support.steered import eventually

pytestmark = pytest.mark.slow

TESTS = Path(__file__).parents[2]


def hangs(pid: int) -> bool:
    """Its main thread sleeps in the kernel's futex call, where the simulated driver hangs."""
    return Path(f"/proc/{pid}/task/{pid}/syscall").read_text().startswith("202 ")


def test_a_killed_child_wakes_and_the_next_look_has_another(driver: Asked) -> None:
    driver.facts()
    pid = driver.pid
    driver.wakes(lambda: os.kill(pid, signal.SIGKILL))
    look = driver.driver.look()
    assert isinstance(look, NodeFacts), look
    assert driver.pid != pid
    assert is_gone(pid)


def test_a_child_that_is_killed_while_it_is_asked_costs_no_look(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    node.control("nvml delay 20")
    looks: list[object] = []
    looking = threading.Thread(target=lambda: looks.append(driver.driver.look()))
    looking.start()
    os.kill(driver.pid, signal.SIGKILL)
    looking.join(patience_s())
    assert isinstance(looks[0], NodeFacts), looks
    node.control("nvml delay 0")


def test_what_is_let_go_leaves_no_process_and_a_later_look_starts_another(driver: Asked) -> None:
    driver.facts()
    pid = driver.pid
    driver.driver.let_go()
    assert is_gone(pid)
    assert driver.driver.samples() == ()
    assert len(driver.facts().cards) == 3


def test_a_driver_is_let_go_while_it_hangs_in_a_look(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    pid = driver.pid
    node.control("nvml hang")
    looks: list[object] = []
    looking = threading.Thread(target=lambda: looks.append(driver.driver.look()))
    looking.start()
    eventually(lambda: hangs(pid), "a look is under way")
    driver.driver.let_go()
    assert is_gone(pid)
    assert driver.driver.pid is None
    looking.join(patience_s())
    assert isinstance(looks[0], Trouble)
    assert "let go" in looks[0].sentence
    node.control("nvml resume")


def test_a_closed_driver_starts_nothing(driver: Asked) -> None:
    driver.facts()
    pid = driver.pid
    driver.driver.close()
    assert is_gone(pid)
    assert isinstance(driver.driver.look(), Trouble)
    assert driver.driver.pid is None
    driver.driver.close()


def test_the_child_dies_with_its_parent_even_while_it_hangs(node: SimulatedNode) -> None:
    body = f"""
import sys, time
from pathlib import Path
from partage_gpu.nvml.driver import Driver
driver = Driver(Path({str(node.root)!r}), wake=lambda: None, look_deadline_s=600)
driver.look()
print(driver.pid, flush=True)
time.sleep(3600)
"""
    parent = subprocess.Popen([sys.executable, "-c", body], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout:
        pid = int(parent.stdout.readline())
    node.control("nvml hang")
    eventually(lambda: hangs(pid), "the child hangs")
    parent.kill()
    parent.wait()
    eventually(lambda: not lives(pid), "the child is gone")
    node.control("nvml resume")


def test_a_child_that_cannot_be_killed_is_left_behind_and_at_most_two_are(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Like a child that sleeps uninterruptibly in the driver."""
    left: list[int] = []
    monkeypatch.setattr(os, "killpg", lambda pid, _: left.append(pid))
    monkeypatch.setattr(process, "_REAP_S", 0.01)
    try:
        with asked(node.root, deadline_s=HASTY_S) as driver:
            driver.facts()
            # The child ends when its socket does, so it is stopped, to simulate one that can't be killed.
            for _ in range(2):
                stopped = driver.pid
                os.kill(stopped, signal.SIGSTOP)
                driver.trouble("hangs")
                driver.driver.let_go()
                if len(set(left)) < 2:
                    driver.facts()
            assert len(set(left)) == 2
            assert isinstance(driver.driver.look(), Trouble)
            assert driver.driver.pid is None
            monkeypatch.undo()
            for pid in set(left):
                os.kill(pid, signal.SIGKILL)
            eventually(lambda: isinstance(driver.driver.look(), NodeFacts), "a new child is started when they are gone")
    finally:
        monkeypatch.undo()
        for pid in set(left):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    assert all(is_gone(pid) for pid in left)


def test_only_the_child_has_the_library(driver: Asked) -> None:
    driver.facts()
    assert "libnvidia-ml" in Path(f"/proc/{driver.pid}/maps").read_text()
    assert "libnvidia-ml" not in Path("/proc/self/maps").read_text()


@pytest.mark.parametrize("bytecode", ["cached", "not cached"])
def test_the_child_is_small(driver: Asked, bytecode: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs on every node, permanently."""
    if bytecode == "not cached":
        python, *others = process.COMMAND
        monkeypatch.setattr(process, "COMMAND", (python, "-B", "-X", f"pycache_prefix={tmp_path}", *others))
    driver.facts()
    assert status(driver.pid, "VmRSS") <= 25 * 1024


def test_the_child_sees_nothing_of_our_environment_that_it_does_not_need(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PARTAGE_SECRET", "x")
    monkeypatch.setenv("LD_PRELOAD", "")
    with asked(node.root) as driver:
        driver.facts()
        environment = Path(f"/proc/{driver.pid}/environ").read_bytes().split(b"\0")
    names = {one.partition(b"=")[0].decode() for one in environment if one}
    assert not names & {"PARTAGE_SECRET", "LD_PRELOAD", "HOME"}


def test_the_loaders_own_way_finds_the_library_for_the_root(
    node: SimulatedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(node.libraries))
    with asked(Path("/")) as driver:
        assert len(driver.facts().cards) == 3


def test_many_threads_may_ask_at_once(driver: Asked) -> None:
    driver.facts()
    failures: list[object] = []

    def ask() -> None:
        for _ in range(10):
            look = driver.driver.look()
            if not isinstance(look, NodeFacts) or len(driver.driver.samples()) != 3:
                failures.append(look)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert failures == []


def test_a_wake_that_fails_costs_nothing(node: SimulatedNode, caplog: pytest.LogCaptureFixture) -> None:
    def fail() -> None:
        raise RuntimeError("no watcher is there")

    driver = Driver(node.root, wake=fail, look_deadline_s=600)
    try:
        driver.look()
        node.control("xid 0 62")
        eventually(driver.xids, "the XID is told")
        eventually(lambda: "no watcher is there" in caplog.text, "the failure is logged")
        assert isinstance(driver.look(), NodeFacts)
    finally:
        driver.close()
