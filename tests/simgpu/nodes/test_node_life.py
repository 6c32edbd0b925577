"""Nodes start, answer, crash and restart; only the right process is ever ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest

from partage_simgpu import simgpud
from partage_simgpu.errors import NodeFailed
from partage_simgpu.node import Nodes
from partage_simgpu.profiles import profile_names
from support.simgpu import SimulatedNode, card, simulated_node

pytestmark = pytest.mark.slow  # each test starts processes

T4 = card("t4")


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with simulated_node(tmp_path, cards=(T4,), name="n1") as node:
        yield node


@contextlib.contextmanager
def simgpud_of(node: SimulatedNode) -> Generator[simgpud.Simgpud]:
    found = simgpud.running(node.root)
    assert found is not None
    with found:
        yield found


@pytest.mark.parametrize("name", profile_names())
def test_simgpud_understands_every_card_and_its_instances(tmp_path: Path, name: str) -> None:
    profile = card(name).profile
    mig = tuple(profile.mig)[:2]
    with simulated_node(tmp_path, cards=(name, card(name, mig=mig))) as node:
        status = node.status()
    assert status[0].total_bytes == (profile.memory_mib - profile.reserved_mib) << 20
    assert sorted(status[index].total_bytes >> 20 for index in range(2, len(status))) == sorted(
        profile.mig[one].memory_mib for one in mig
    )


def test_a_node_that_does_not_run_says_so(node: SimulatedNode) -> None:
    node.stop()
    with pytest.raises(NodeFailed, match=r"no simgpud serves .*; start the node first"):
        node.control("status")


def test_a_killed_node_comes_again_with_nothing_of_before(node: SimulatedNode) -> None:
    node.control("xid 0 13")
    before = node.pid
    node.kill()
    node.start()
    assert node.pid != before
    assert node.status()[0].last_xid == 0


def test_a_node_is_started_once(node: SimulatedNode) -> None:
    with pytest.raises(NodeFailed, match="runs already, as process"):
        node.start()
    with pytest.raises(NodeFailed, match=r"simgpud does not start: .*another simgpud serves this node"):
        simgpud.start(node.root)
    assert node.status()


def test_a_wrong_file_is_named_with_its_line_when_a_node_does_not_start(node: SimulatedNode) -> None:
    node.stop()
    with (node.root / "etc/simgpu/node.conf").open("a") as conf:
        conf.write("colour = green\n")
    with pytest.raises(NodeFailed, match=r"simgpud does not start: .*node\.conf:\d+: colour: "):
        node.start()


def test_a_stopped_simgpud_does_not_answer_and_can_be_ended_all_the_same(node: SimulatedNode) -> None:
    node.send(signal.SIGSTOP)
    with simgpud_of(node) as found:
        found.stop()
        assert not found.runs


def test_the_process_that_serves_a_node_is_found_by_the_kernels_word(node: SimulatedNode) -> None:
    with simgpud_of(node) as found:
        assert found.pid == node.pid
        assert found.runs
    assert simgpud.is_served(node.root)
    node.kill()
    assert simgpud.running(node.root) is None
    assert not simgpud.is_served(node.root)


def test_a_long_folder_is_no_obstacle(tmp_path: Path) -> None:
    folder = tmp_path.joinpath(*["quite-a-long-name"] * 10)
    assert len(str(folder)) > 107
    with simulated_node(folder, cards=(T4,)) as node:
        assert node.control("peaks reset") == ""


def test_a_node_in_the_background_outlives_the_process_and_the_session_that_made_it(tmp_path: Path) -> None:
    making = (
        "import sys; from pathlib import Path; from support.simgpu import card;"
        "from partage_simgpu.node import Nodes;"
        "print(Nodes(Path(sys.argv[1])).make('lab', [card('t4')])[1])"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    argv = [sys.executable, "-c", making, str(tmp_path)]
    made = subprocess.run(argv, env=env, capture_output=True, text=True, check=True, start_new_session=True)
    nodes = Nodes(tmp_path)
    with simgpud_of(nodes.node("lab")) as found:
        assert found.pid == int(made.stdout)
        assert os.getsid(found.pid) == found.pid
        nodes.remove("lab")
        assert not found.runs
    assert not list(tmp_path.iterdir())


def test_a_node_that_does_not_start_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "build"
    broken.mkdir()
    (broken / "simgpud").write_text("#!/bin/sh\necho no luck >&2\nexit 1\n")
    (broken / "simgpud").chmod(0o755)
    monkeypatch.setenv("PARTAGE_SIMGPU", str(broken))
    with pytest.raises(NodeFailed, match="simgpud does not start: no luck"):
        Nodes(tmp_path / "nodes").make("lab", [T4])
    assert not list((tmp_path / "nodes").iterdir())


def test_only_a_node_is_ever_removed(tmp_path: Path) -> None:
    (tmp_path / "nodes/mine").mkdir(parents=True)
    (tmp_path / "nodes/mine/letter").touch()
    for name in ("mine", "..", "../nodes", "nodes"):
        with pytest.raises(NodeFailed, match="there is no node"):
            Nodes(tmp_path / "nodes").remove(name)
    assert (tmp_path / "nodes/mine/letter").exists()
