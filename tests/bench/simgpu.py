"""Whether the simulated card shares time as a real one does, costs programs nothing, and counts memory to the byte.

Memory is counted for processes of the machine and for others in containers of a real runtime, so it needs the rig.

Timing holds on a machine that does nothing else: a run during which others took more than 2 % of the processors is
repeated, not averaged. What is measured are programs that use the driver as any program does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from bench.harness import Bench
from bench.simulating.churn import Churning, outside
from bench.simulating.containers import containers_of
from bench.simulating.quiet import MOST_FOREIGN, quietly
from rig.lone import lone_runtime
from rig.programs.steps import to_stderr
from support.simgpu import SimulatedNode, card, simulated_node, workload

SECONDS: Final = 10.0
SMOKE_SECONDS: Final = 0.3
SHARE_ERROR: Final = 0.02
ALONE: Final = 0.97
LAUNCH_NS: Final = 100
LAUNCHES: Final = 1_000_000
SMOKE_LAUNCHES: Final = 10_000
PROCESSES: Final = 8
OPERATIONS: Final = 50
ROUNDS: Final = 40
"""In which those that are not killed do more than 10,000 operations."""
SMOKE_ROUNDS: Final = 2
CONTEXT_MIB: Final = 64
MEMORY_MIB: Final = 6144
"""So little that the card is full at times."""
SEED: Final = 6


class Measuring:
    def __init__(self, bench: Bench, node: SimulatedNode) -> None:
        self.bench, self.node = bench, node
        self._seconds = str(SMOKE_SECONDS if bench.smoke else SECONDS)

    def shares(self, processes: int) -> None:
        told = self._run("several", "--processes", str(processes), "--seconds", self._seconds)
        shares = [float(each["gpu_seconds"]) / float(each["wall_seconds"]) for each in told["each"]]
        self.bench.engaged(f"{processes} processes computed", len(shares) == processes and min(shares) > 0)
        for index, share in enumerate(sorted(shares)):
            self.bench.figure(f"share of process {index + 1} of {processes}", share)
        error = max(abs(share - 1 / processes) for share in shares)
        self.bench.bar(
            f"{processes} processes: furthest from their part", error, at_most=SHARE_ERROR, unit="of the time"
        )

    def alone(self, program: str) -> None:
        told = self._run(program, "--seconds", self._seconds, "--kernel-us", "1000")
        self.bench.engaged(f"{program} computed", told["launches"] > 0)
        part = float(told["gpu_seconds"]) / float(told["wall_seconds"])
        self.bench.bar(f"{program} of 1 ms kernels alone", part, at_least=ALONE, unit="of the time")

    def launch_cost(self) -> None:
        """What a launch that does not block costs its thread."""
        told = self._run("launch-cost", "--count", str(SMOKE_LAUNCHES if self.bench.smoke else LAUNCHES))
        self.bench.engaged("kernels were launched", told["launches"] >= SMOKE_LAUNCHES)
        self.bench.figure("reading the clock once, ns", float(told["clock_ns"]))
        self.bench.bar("a launch that does not block", float(told["launch_ns"]), at_most=LAUNCH_NS, unit="ns of CPU")

    def _run(self, program: str, *arguments: str) -> dict[str, Any]:
        judged = not self.bench.smoke
        name = " ".join((program, *arguments))
        found = quietly(lambda: workload(self.node, program, *arguments), daemons=[self.node.pid], judged=judged)
        self.bench.engaged(f"{name}: {found.told['error']}", found.told["error"] is None)
        self.bench.figure(f"CPU of others during {name}", found.foreign)
        if judged:
            self.bench.engaged("a machine that does nothing else", found.foreign <= MOST_FOREIGN)
        return found.told


def memory(bench: Bench) -> None:
    """The card's books against what processes know that they hold."""
    small = card("h100", memory_mib=MEMORY_MIB, context_mib=CONTEXT_MIB, reserved_mib=0)
    wrong: list[str] = []
    in_containers = 0
    with lone_runtime({}, say=to_stderr) as runtime, simulated_node(runtime.scratch, cards=(small,)) as node:
        containers = containers_of(runtime, node)
        starts = [containers.start if index % 2 else outside(node) for index in range(PROCESSES)]
        with Churning(node, starts, operations=OPERATIONS, context_mib=CONTEXT_MIB, seed=SEED) as churning:
            for _ in range(SMOKE_ROUNDS if bench.smoke else ROUNDS):
                wrong += churning.round()
                in_containers += len(churning.pids & containers.pids())
            wrong += churning.finish()
    bench.engaged("memory was taken and processes were killed", churning.compared > 0 < churning.killed)
    bench.engaged("some of the processes were in containers", in_containers)
    bench.figure("of the compared accounts, those of processes in containers", in_containers)
    bench.figure("operations of every kind", churning.done)
    bench.figure("processes killed in the middle", churning.killed)
    bench.figure("processes stopped in the middle", churning.stopped)
    if bench.smoke:  # bars are not judged then, and this one has nothing to do with time
        bench.engaged(f"exact books: {wrong[:1]}", not wrong)
    bench.bar(f"accounts that are not exact, of {churning.compared}", len(wrong), at_most=0, unit="accounts")


def main() -> int:
    """Memory on one card, where what else runs does not matter; then time on another."""
    bench = Bench.from_argv("simgpu")
    memory(bench)
    with tempfile.TemporaryDirectory() as folder, simulated_node(Path(folder)) as node:
        measuring = Measuring(bench, node)
        measuring.shares(2)
        measuring.shares(3)
        measuring.alone("flood")
        measuring.alone("launch-wait")
        measuring.launch_cost()
    return bench.finish()


if __name__ == "__main__":
    raise SystemExit(main())
