"""Without a driver that answers, a look returns the problem, and facts follow as soon as that is fixed."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from partage_gpu.nvml.facts import NodeFacts, TroubleKind
from partage_simgpu.node import SimulatedNode
from rig.patience import patience_s
from simgpu.discovery.asked import HASTY_S, Asked, asked, is_gone
from support.steered import eventually

pytestmark = pytest.mark.slow


def test_a_root_without_the_library_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with asked(tmp_path) as driver:
        trouble = driver.trouble("no-library")
    assert str(tmp_path) in trouble.sentence
    assert "libnvidia-ml.so.1" in trouble.sentence


def test_a_library_that_is_none_says_so(tmp_path: Path) -> None:
    library = tmp_path / "usr/lib64/libnvidia-ml.so.1"
    library.parent.mkdir(parents=True)
    library.write_text("this is no library")
    with asked(tmp_path) as driver:
        assert str(library) in driver.trouble("no-library").sentence


def test_a_driver_that_is_not_loaded_is_told_and_then_found(node: SimulatedNode, driver: Asked) -> None:
    node.stop()
    assert "(9)" in driver.trouble("no-driver").sentence
    node.start()
    assert len(driver.facts().cards) == 3


@pytest.mark.parametrize(("number", "kind"), [(18, "mismatch"), (4, "failed"), (4242, "failed")])
def test_an_error_is_told_with_its_number(node: SimulatedNode, driver: Asked, number: int, kind: TroubleKind) -> None:
    driver.facts()
    node.control(f"nvml answer {number}")
    assert f"({number})" in driver.trouble(kind).sentence
    node.control("nvml answer 0")
    assert len(driver.facts().cards) == 3


def test_a_driver_that_is_loaded_anew_is_found_within_one_look(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    node.control("reload")
    look = driver.driver.look()
    assert isinstance(look, NodeFacts), look


def test_a_library_that_is_replaced_is_loaded_anew_with_the_driver(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    library = (node.root / "usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1").resolve()
    newer = library.with_name("libnvidia-ml.so.580.95.99")
    shutil.copy2(library, newer)
    link = library.with_name("libnvidia-ml.so.1")
    link.unlink()
    link.symlink_to(newer.name)
    node.restart()
    driver.facts()
    maps = Path(f"/proc/{driver.pid}/maps").read_text()
    assert newer.name in maps
    assert library.name not in maps


def test_a_hanging_driver_is_told_and_its_child_killed(node: SimulatedNode) -> None:
    with asked(node.root, deadline_s=HASTY_S) as driver:
        driver.facts()
        pid = driver.pid
        node.control("nvml hang")
        assert "hangs" in driver.trouble("hangs").sentence
        eventually(lambda: is_gone(pid), "the child is gone")
        node.control("nvml resume")
        assert len(driver.facts().cards) == 3


def test_a_driver_that_hangs_while_it_is_opened_wakes_when_it_goes_on(node: SimulatedNode) -> None:
    with asked(node.root, deadline_s=HASTY_S) as driver:
        node.control("nvml hang")
        assert "not found its cards yet" in driver.trouble("starts").sentence
        pid = driver.pid
        driver.wakes(lambda: node.control("nvml resume"))
        assert len(driver.facts().cards) == 3
        assert driver.pid == pid


def test_a_slow_driver_is_not_killed_and_its_late_answer_wakes(node: SimulatedNode) -> None:
    with asked(node.root, deadline_s=HASTY_S) as driver:
        driver.facts()
        pid = driver.pid
        node.control("nvml delay 60")
        before = driver.woken
        assert "slow" in driver.trouble("slow").sentence
        eventually(lambda: driver.woken > before, "the late answer wakes")
        assert len(driver.facts().cards) == 3
        assert driver.pid == pid
        node.control("nvml delay 0")


def test_a_look_never_waits_for_another_one(node: SimulatedNode) -> None:
    with asked(node.root, deadline_s=HASTY_S) as driver:
        driver.facts()
        node.control("nvml hang")
        looks = [threading.Thread(target=driver.driver.look) for _ in range(4)]
        for one in looks:
            one.start()
        for one in looks:
            one.join(patience_s())
            assert not one.is_alive()
        node.control("nvml resume")
