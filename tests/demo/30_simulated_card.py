"""A simulated card: NVIDIA's own bindings see it, two programs share its time, and one runs out of memory.

There is no GPU here. The programs load `libcuda.so.1` and the bindings `libnvidia-ml.so.1`, as they would anywhere.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from partage_simgpu.node import SimulatedNode
from support.simgpu import NODE, built, card_uuid, simulated_node, workload

SECONDS: Final = 3.0
OVERSIZED_MIB: Final = 100_000
LOOK: Final = """
import pynvml
pynvml.nvmlInit()
card = pynvml.nvmlDeviceGetHandleByIndex(0)
memory = pynvml.nvmlDeviceGetMemoryInfo(card)
watts = pynvml.nvmlDeviceGetPowerUsage(card) / 1e3
celsius = pynvml.nvmlDeviceGetTemperature(card, pynvml.NVML_TEMPERATURE_GPU)
busy = pynvml.nvmlDeviceGetUtilizationRates(card).gpu
print(f"driver {pynvml.nvmlSystemGetDriverVersion()}   {pynvml.nvmlDeviceGetUUID(card)}")
print(f"{pynvml.nvmlDeviceGetName(card)}   {celsius} °C   {watts:.0f} W   {busy} % busy")
print(f"{memory.used >> 20} MiB of {memory.total >> 20} MiB used")
for each in pynvml.nvmlDeviceGetComputeRunningProcesses(card):
    print(f"process {each.pid}: {each.usedGpuMemory >> 20} MiB")
"""


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def look(node: SimulatedNode) -> None:
    """What pynvml, as it comes from the package index, says of the card."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK], env=node.environment, capture_output=True, text=True, check=True
    )
    for line in done.stdout.splitlines():
        say(f"   | {line}")


def flood(node: SimulatedNode) -> subprocess.Popen[str]:
    """A program that launches kernels of 1 ms without ever waiting."""
    command = [str(built() / "flood"), "--seconds", str(SECONDS), "--kernel-us", "1000"]
    return subprocess.Popen(command, env=node.environment, stdout=subprocess.PIPE, text=True)


def told(program: subprocess.Popen[str]) -> dict[str, Any]:
    line: dict[str, Any] = json.loads(program.communicate()[0])
    return line


def share_unmetered(node: SimulatedNode) -> None:
    """Two at once, whose turns the card itself takes."""
    say(f"\n2. Two programs flood it for {SECONDS:.0f} s, and nothing meters them")
    programs = [flood(node), flood(node)]
    time.sleep(SECONDS / 2)
    look(node)
    for program, figures in zip(programs, map(told, programs), strict=True):
        part = figures["gpu_seconds"] / figures["wall_seconds"]
        say(f"   process {program.pid} got {figures['gpu_seconds']:.3f} s of the card: {part:.1%}")


def run_out_of_memory(node: SimulatedNode) -> None:
    say(f"\n3. A program asks for {OVERSIZED_MIB} MiB")
    figures = workload(node, "allocate", "--kind", "large", "--mib", str(OVERSIZED_MIB))
    say(f"   ✗ {figures['error']}")


def lose_it(node: SimulatedNode) -> None:
    say("\n4. The card falls off the bus while a program runs on it (XID 79)")
    program = flood(node)
    time.sleep(SECONDS / 10)
    node.control("lose 0")
    say(f"   ✗ {told(program)['error']}")


def main() -> None:
    say("\nA simulated card, for programs that know nothing of it\n")
    with tempfile.TemporaryDirectory() as folder, simulated_node(Path(folder), cards=("h100",)) as node:
        say(f"1. A driver root with an H100, {card_uuid(NODE, 0)}, as pynvml sees it")
        look(node)
        share_unmetered(node)
        run_out_of_memory(node)
        lose_it(node)
    say("\n   One for yourself: partage simgpu new lab --card h100 --count 2")


if __name__ == "__main__":
    main()
