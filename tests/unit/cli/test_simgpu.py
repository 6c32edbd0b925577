"""`partage simgpu` from the command line: output, exit code and running processes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from partage_simgpu import simgpud
from partage_simgpu.node import Nodes
from unit.cli.program import partage, process

pytestmark = pytest.mark.slow  # each test starts processes


class Lab:
    """A folder of nodes, and the commands on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, command: str, *words: str) -> subprocess.CompletedProcess[str]:
        typed = process if command == "load" else partage  # it becomes the program that loads the node
        return typed(self.folder, "simgpu", command, "--dir", str(self.folder / "nodes"), *words)

    def told(self) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self("ls", "-o", "json").stdout)
        return rows

    def serves(self, name: str) -> bool:
        return simgpud.is_served(self.folder / "nodes" / name)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    yield Lab(tmp_path)
    nodes = Nodes(tmp_path / "nodes")
    for name in nodes.names():
        nodes.remove(name)


def test_new_prints_the_line_for_a_shell_and_tells_people_the_rest(lab: Lab) -> None:
    done = lab("new", "a", "--card", "t4", "--count", "2")
    libraries = lab.folder / "nodes/a/usr/lib/x86_64-linux-gnu"
    assert (done.returncode, done.stdout) == (0, f"export LD_LIBRARY_PATH={libraries}\n")
    assert done.stderr.startswith("node a: 2 x Tesla T4; simgpud is process ")
    assert (libraries / "libcuda.so.1").exists()
    assert lab.serves("a")


def test_a_card_of_your_own_comes_from_a_file(lab: Lab) -> None:
    (lab.folder / "mine.toml").write_text('name = "Mine"\nmemory_mib = 1024\n')
    lab("new", "a", "--file", str(lab.folder / "mine.toml"))
    assert [card["name"] for card in lab.told()[0]["cards"]] == ["Mine"]


def test_cards_are_cut_in_their_order(lab: Lab) -> None:
    lab("new", "a", "--card", "h200", "--count", "3", "--mig", "1g.18gb,3g.71gb", "--mig", "7g.141gb")
    assert [card["name"].removeprefix("NVIDIA H200") for card in lab.told()[0]["cards"]] == [
        *("", " MIG 3g.71gb", " MIG 1g.18gb"),
        *("", " MIG 7g.141gb"),
        "",
    ]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("A_b",), 2, "'A_b' is no node's name"),
        (("a", "--card", "v100"), 2, "'v100' is not one of"),
        (("a", "--card", "l4", "--mig", "1g.5gb"), 1, "partage: NVIDIA L4 has no MIG profile 1g.5gb"),
        (("a", "--mig", "1g.10gb", "--mig", "1g.10gb"), 2, "--mig is given for 2 cards, and there are 1"),
        (("a", "--card", "l4", "--card", "t4", "--count", "20"), 1, "partage: a node has 1 to 32 cards"),
        (("a", "--file", "/nowhere.toml"), 2, "does not exist"),
    ],
)
def test_what_cannot_be_is_said_in_a_line_and_leaves_nothing(
    lab: Lab, words: tuple[str, ...], code: int, said: str
) -> None:
    done = lab("new", *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr.splitlines()[-1]
    assert lab.told() == []


def test_a_name_is_given_once(lab: Lab) -> None:
    lab("new", "a", "--card", "t4")
    done = lab("new", "a", "--card", "l4")
    assert done.returncode == 1
    assert done.stderr == "partage: there is a node a already; remove it, or take another name [PTG601]\n"
    assert lab.told()[0]["cards"][0]["name"] == "Tesla T4"


def test_ls_is_a_table_for_people_and_says_who_runs(lab: Lab) -> None:
    for name in ("a", "b"):
        lab("new", name, "--card", "t4")
    with simgpud_of(lab, "b") as daemon:
        daemon.kill()
    header, *rows = [re.split(r"\s{2,}", line) for line in lab("ls").stdout.splitlines()]
    assert header == ["NODE", "STATE", "CARD", "NAME", "USED", "PROCESSES"]
    assert rows == [
        ["a", "running", "0", "Tesla T4", "0 of 14967 MiB", "none"],
        ["b", "stopped", "0", "Tesla T4", "-", "-"],
    ]
    assert "GPU-" in lab("ls", "-o", "wide").stdout


def simgpud_of(lab: Lab, name: str) -> simgpud.Simgpud:
    found = simgpud.running(lab.folder / "nodes" / name)
    assert found is not None
    return found


def test_a_node_that_ended_starts_again(lab: Lab) -> None:
    first = lab("new", "a", "--card", "t4")
    with simgpud_of(lab, "a") as daemon:
        daemon.kill()
    again = lab("start", "a")
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert lab.serves("a")
    assert lab("start", "a").stderr.count("\n") == 1


def test_rm_ends_and_deletes_even_what_is_stopped_by_a_signal(lab: Lab) -> None:
    lab("new", "a", "--card", "t4")
    with simgpud_of(lab, "a") as daemon:
        daemon.send(signal.SIGSTOP)
        assert lab("rm", "a").returncode == 0
        assert not daemon.runs
    assert not (lab.folder / "nodes/a").exists()


def test_rm_takes_no_folder_that_is_no_node(lab: Lab) -> None:
    (lab.folder / "nodes/letters").mkdir(parents=True)
    for name in ("letters", "..", "."):
        assert lab("rm", name).returncode == 1
    assert (lab.folder / "nodes/letters").exists()


def test_every_fault_reaches_simgpud(lab: Lab) -> None:
    lab("new", "a", "--card", "t4")
    faults = ("xid 0 63", "ecc 0 corrected 3", "fail 0 2", "stick 0", "peaks", "lose 0", "restore 0", "reload")
    for words in (*faults, "nvml delay 5", "nvml answer 15", "nvml hang", "nvml resume"):
        done = lab("inject", "a", *words.split())
        assert (words, done.returncode, done.stdout, done.stderr) == (words, 0, "", "")
        seen = {"xid 0 63": "xid=63", "lose 0": "health=lost"}.get(words, "health=healthy")
        assert seen in Nodes(lab.folder / "nodes").node("a").control("status"), words


def test_a_fault_that_simgpud_refuses_is_one_line(lab: Lab) -> None:
    lab("new", "a", "--card", "t4")
    done = lab("inject", "a", "lose", "5")
    assert done.returncode == 1
    assert re.fullmatch(r"partage: lose: .*\n", done.stderr)


def test_help_for_a_fault_needs_no_node(lab: Lab) -> None:
    done = lab("inject", "none", "xid", "--help")
    assert done.returncode == 0
    assert "NUMBER" in done.stdout
    assert lab("inject", "none", "lose", "0").stderr.startswith("partage: there is no node none in ")


def test_load_runs_a_program_on_the_node_with_its_own_options_and_exit_code(lab: Lab) -> None:
    lab("new", "a", "--card", "t4")
    done = lab("load", "a", "flood", "--count", "3", "--kernel-us", "100")
    assert (done.returncode, json.loads(done.stdout)["launches"]) == (0, 3)
    failed = lab("load", "a", "flood", "--count", "3", "--card", "9")
    assert failed.returncode == 1
    assert "CUDA_ERROR_INVALID_DEVICE" in json.loads(failed.stdout)["error"]
    assert "--kernel-us" in lab("load", "a", "flood", "--help").stdout


def test_nodes_of_a_user_lie_in_the_users_folder_and_those_of_root_below_root(tmp_path: Path) -> None:
    done = partage(tmp_path, "simgpu", "rm", "none")
    home = "var/lib/partage/simgpu" if os.geteuid() == 0 else ".local/state/partage/simgpu"
    assert f"{home}; known: there is none" in done.stderr
