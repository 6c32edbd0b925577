"""`partage simulate` from the command line: a process, its output and its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from support.gpu_fleet import card
from unit.cli.program import PARTAGE, environment, partage
from unit.cli.simulation.snapshots_made import holding, node, pod, printed
from unit.cli.simulation.test_traces import NODES, PODS

pytestmark = pytest.mark.slow  # each test starts processes


def simulated(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return partage(folder, "simulate", "--processes", "1", "--seeds", "2", *words)


def trace(folder: Path, pods: str = PODS) -> tuple[str, ...]:
    (folder / "nodes.csv").write_text(NODES)
    (folder / "pods.csv").write_text(pods)
    return ("--nodes", str(folder / "nodes.csv"), "--pods", str(folder / "pods.csv"))


def snapshot(folder: Path) -> str:
    file = folder / "now.json"
    odd = node("n2", text="{")
    file.write_bytes(printed(node("n1", card("a")), odd, holding("p", 500, node="n1", card_id="a"), pod("q", 300)))
    return str(file)


def test_a_line_for_each_policy_on_stdout_and_progress_on_stderr(tmp_path: Path) -> None:
    done = simulated(tmp_path, *trace(tmp_path), "--policy", "binpack", "--policy", "spread")
    assert done.returncode == 0, done.stderr
    head, _, header, *lines = done.stdout.splitlines()
    assert head == "pods.csv on nodes.csv: 2 nodes, 2 cards"
    assert header.split("   ")[0].strip() == "POLICY"
    assert [line.split()[0] for line in lines] == ["binpack", "spread"]
    assert [line.partition(": ")[0] for line in done.stderr.splitlines()] == ["1/4", "2/4", "3/4", "4/4"]


def test_policies_are_compared_by_default(tmp_path: Path) -> None:
    done = simulated(tmp_path, "--synthetic", "2", "--arrivals", "60")
    lines = done.stdout.splitlines()[3:]
    assert [line.split()[0] for line in lines] == ["binpack", "spread", "kubeshare", "fgd", "fgd+"]


def test_json_has_every_point_of_every_curve(tmp_path: Path) -> None:
    whole = json.loads(simulated(tmp_path, *trace(tmp_path), "--policy", "fgd", "-o", "json").stdout)
    assert whole["workload"] == {"origin": "pods.csv on nodes.csv", "nodes": 2, "cards": 2, "pods": 3}
    (policy,) = whole["policies"]
    assert (policy["policy"], policy["seeds"]) == ("fgd", [42, 43])
    assert [point["arrived"] for point in policy["points"]] == list(range(5, 135, 5))


def test_a_snapshot_tells_how_the_cluster_stands_and_what_was_left_out(tmp_path: Path) -> None:
    done = simulated(tmp_path, "--snapshot", snapshot(tmp_path), "--policy", "binpack")
    assert done.returncode == 0, done.stderr
    assert "now: pods ask for 80 % of the cards; 50.00 % are allocated" in done.stdout
    assert done.stderr.startswith("node n2 is left out: ")


def test_the_plot_is_a_picture_with_a_curve_for_each_policy(tmp_path: Path) -> None:
    picture = tmp_path / "curves.svg"
    done = simulated(tmp_path, *trace(tmp_path), "--policy", "binpack", "--policy", "fgd", "--plot", str(picture))
    assert done.returncode == 0, done.stderr
    drawn = ET.parse(picture).getroot()  # noqa: S314  we wrote it
    assert len(drawn.findall("{http://www.w3.org/2000/svg}polyline")) == 2 * 2


def test_a_full_disk_costs_the_picture_and_not_the_figures(tmp_path: Path) -> None:
    done = simulated(tmp_path, *trace(tmp_path), "--policy", "binpack", "--plot", "/dev/full")
    assert done.returncode == 1
    assert "binpack" in done.stdout
    assert done.stderr.splitlines()[-1].startswith("partage: ")
    assert "No space left on device" in done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ((), 2, "in one way: --nodes with --pods, --snapshot, or --synthetic"),
        (("--synthetic", "2", "--snapshot", "@now"), 2, "in one way"),
        (("--nodes", "@nodes"), 2, "a trace has two files; --pods is missing"),
        (("--synthetic", "0"), 2, "0 is not in the range"),
        (("--snapshot", "none.json"), 2, "File 'none.json' does not exist"),
        (("--synthetic", "2", "--policy", "best"), 1, "policy 'best' is not known; allowed: one of binpack"),
        (("--snapshot", "@nodes"), 1, "nodes.csv: $ is "),
    ],
)
def test_what_cannot_be_replayed_is_one_line(tmp_path: Path, words: tuple[str, ...], code: int, said: str) -> None:
    trace(tmp_path)
    files = {"@nodes": str(tmp_path / "nodes.csv"), "@now": snapshot(tmp_path)}
    done = simulated(tmp_path, *(files.get(word, word) for word in words))
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


def test_an_interrupt_ends_every_process_without_a_traceback(tmp_path: Path) -> None:
    words = ("simulate", "--synthetic", "9", "--seeds", "500", "--processes", "2")
    with subprocess.Popen(
        [*PARTAGE, *words],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd=tmp_path,
    ) as running:
        assert running.stderr is not None
        line = running.stderr.readline()  # one process is working by then, the other may still be starting
        os.killpg(running.pid, signal.SIGINT)  # to the whole group, as a terminal does
        said = running.stderr.read()
    assert line.startswith("1/")
    assert running.returncode == 130
    assert "Traceback" not in said


def test_a_wrong_cell_is_told_by_file_line_and_column(tmp_path: Path) -> None:
    done = simulated(tmp_path, *trace(tmp_path, PODS.replace("1,460", "1,4600")))
    where = f"partage: {tmp_path / 'pods.csv'}: line 2, column gpu_milli is '4600'"
    assert done.stderr == f"{where}; allowed: a whole number from 1 to 1000 [PTG202]\n"
    assert done.returncode == 1
