"""The small programs that use a card: each does its work, and reports it in one line."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from partage_simgpu.build import WORKLOADS, sources
from rig.patience import patience_s
from support.simgpu import SimulatedNode, built, card, simulated_node, workload

pytestmark = pytest.mark.slow  # each test starts processes

MIB = 1 << 20
SHORT = {
    "allocate": ("--kind", "all", "--seconds", "0.01"),
    "launch-cost": ("--count", "2000"),
    "several": ("--seconds", "0.2", "--kernel-us", "100"),
}
CLIENT = """
import sys
import time
from partage_simgpu.client import Cuda, CudaError
with Cuda() as card:
    before = card.room()
    address = card.allocate(4 << 20)
    assert before.free_bytes - card.room().free_bytes == 4 << 20
    card.write(address, b"seven")
    assert card.read(address, 5) == b"seven"
    for _ in range(3):
        card.launch(duration_ns=100_000)
    card.synchronize()
    try:
        card.allocate(before.total_bytes)
    except CudaError as error:
        print(error)
    card.free(address)
    assert card.room().free_bytes <= before.free_bytes
"""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    with simulated_node(tmp_path, cards=(card("t4", memory_mib=2048, context_mib=64),)) as node:
        yield node


def test_every_workload_has_its_line_in_the_table() -> None:
    files = {file.stem for file in (sources() / "workloads").glob("*.c")} - {"common"}
    assert set(WORKLOADS) == files


@pytest.mark.parametrize("program", WORKLOADS)
def test_help_says_what_it_does_in_the_words_of_the_table(program: str) -> None:
    done = subprocess.run([built() / program, "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"{program}: {WORKLOADS[program]}\n")


@pytest.mark.parametrize("program", WORKLOADS)
def test_it_uses_the_card_and_leaves_nothing_there(node: SimulatedNode, program: str) -> None:
    told = workload(node, program, *SHORT.get(program, ("--count", "5", "--kernel-us", "100")))
    assert told["error"] is None
    assert told["launches"] > 0
    assert node.status()[0].used_bytes == 0
    assert node.status()[0].peak_bytes >= 64 * MIB


@pytest.mark.parametrize("program", ["flood", "launch-wait", "graph-replay"])
def test_what_it_received_is_what_it_launched(node: SimulatedNode, program: str) -> None:
    told = workload(node, program, "--count", "20", "--kernel-us", "500")
    kernels = 10 if program == "graph-replay" else 1
    assert told["gpu_seconds"] == pytest.approx(20 * kernels * 500e-6)
    assert told["wall_seconds"] >= told["gpu_seconds"] * 0.999


def test_several_tells_each_part_and_the_sum(node: SimulatedNode) -> None:
    told = workload(node, "several", "--processes", "3", "--seconds", "0.3", "--kernel-us", "200")
    assert len(told["each"]) == 3
    assert told["launches"] == sum(each["launches"] for each in told["each"])
    assert all(each["launches"] > 0 for each in told["each"])


def test_inference_answers_all_requests_and_orders_its_times(node: SimulatedNode) -> None:
    told = workload(node, "inference", "--count", "20", "--rate", "200", "--kernels", "4", "--kernel-us", "50")
    assert (told["requests"], told["launches"]) == (20, 80)
    assert 0.2 <= told["p50_ms"] <= told["p99_ms"] <= told["max_ms"]


def test_allocate_tells_what_each_kind_took(node: SimulatedNode) -> None:
    told = workload(node, "allocate", "--kind", "all", "--mib", "64")
    assert {kind: told[kind] for kind in ("large", "pitch", "managed", "mapped")} == dict.fromkeys(
        ("large", "pitch", "managed", "mapped"), 64 * MIB
    )
    assert told["pool"] >= 64 * MIB
    assert told["small"] == 2 * MIB


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("flood", "--card", "3", "--count", "1"), "cuDeviceGet: CUDA_ERROR_INVALID_DEVICE (101)"),
        (("allocate", "--kind", "large", "--mib", "4096"), "large: CUDA_ERROR_OUT_OF_MEMORY (2)"),
        (("allocate", "--kind", "best"), "--kind best: there is large, small"),
        (("inference", "--rate", "0"), "--rate: must be more than 0"),
        (("several", "--processes", "99"), "--processes: 1 to 64"),
    ],
)
def test_what_goes_wrong_stands_in_its_line(node: SimulatedNode, arguments: tuple[str, ...], error: str) -> None:
    assert workload(node, *arguments)["error"].startswith(error)


def test_a_card_that_is_lost_ends_it_with_an_error(node: SimulatedNode) -> None:
    with subprocess.Popen(
        [built() / "launch-wait", "--seconds", "1000"], env=node.environment, stdout=subprocess.PIPE, text=True
    ) as running:
        while running.poll() is None and not node.status()[0].processes:
            time.sleep(0.001)
        node.control("lose 0")
        told, _ = running.communicate(timeout=patience_s())
    assert running.returncode == 1
    assert "CUDA_ERROR_" in told


def test_without_a_driver_it_says_what_to_set() -> None:
    done = subprocess.run([built() / "flood"], env={"LD_LIBRARY_PATH": ""}, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "set LD_LIBRARY_PATH to the libraries of a node" in done.stdout


@pytest.mark.parametrize("words", [("--colour", "green"), ("--count", "many"), ("--seconds", "-1"), ("word",)])
def test_wrong_usage_is_said_on_stderr(words: tuple[str, ...]) -> None:
    done = subprocess.run([built() / "flood", *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("flood: ")
    assert done.stderr.count("\n") == 1


def test_python_has_a_client_of_the_same_driver(node: SimulatedNode) -> None:
    env = {**node.environment, "PYTHONPATH": ":".join(sys.path)}
    done = subprocess.run([sys.executable, "-c", CLIENT], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "cuMemAlloc_v2: CUDA_ERROR_OUT_OF_MEMORY (2)\n"
