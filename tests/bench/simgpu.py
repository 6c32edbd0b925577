"""Whether the simulated card divides time as a real one does, at no cost to programs.

Timing holds on an otherwise idle machine: a run during which others took more than 2 % of the processors is repeated,
not averaged. The measured programs use the driver as any program does.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

from bench.harness import Bench
from bench.measuring.quiet import MOST_FOREIGN, quietly
from support.simgpu import SimulatedNode, simulated_node, workload

SECONDS: Final = 10.0
SMOKE_SECONDS: Final = 0.3
SHARE_ERROR: Final = 0.02
ALONE: Final = 0.97
LAUNCH_NS: Final = 100
LAUNCHES: Final = 1_000_000
SMOKE_LAUNCHES: Final = 10_000


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
        """The time that a non-blocking launch takes of its thread."""
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


def main() -> int:
    bench = Bench.from_argv("simgpu")
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
