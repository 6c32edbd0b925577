"""Time that a share adds to `docker run`, beside runc and beside partage-oci for a container without a request.

Docker runs a container that ends at once by each way, in turns. With a share it is placed by the agent and prepared by
the broker, on a simulated card.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections import defaultdict
from typing import Final

from bench.harness import Bench
from support.engine_stage import PROGRAM, RUNTIME, VISIBLE, install_program, shares_on
from support.engines.docker import DEBIANS, Docker, dockerd_on
from support.engines.engine import engine_programs
from support.engines.machines import engine_machines
from support.machine_image import workloads

TURNS, SMOKE_TURNS = 60, 2
WARM_UP: Final = 3
MOST_ADDED_MS: Final = 120.0
WAYS: Final = {
    "runc": ("--runtime", "runc"),
    "without a share": ("--runtime", RUNTIME),
    "with a share": ("--runtime", RUNTIME, "-e", "PARTAGE_SHARE=300"),
}


def main() -> int:
    bench = Bench.from_argv("run")
    programs = engine_programs(DEBIANS)
    settings = {"runtimes": {RUNTIME: {"path": PROGRAM}}}
    with engine_machines(visible={*programs.folders, *VISIBLE}) as (machine,):
        install_program(machine, programs["runc"])
        with shares_on(machine, "h100") as stage, dockerd_on(machine, settings) as docker:
            docker.load({"tools": workloads()})
            container = docker.run("-d", *WAYS["with a share"], "tools", "sleep", "100000")
            bench.engaged("a share is held", [each["id"] for each in stage.held()] == [container])
            docker.end(container)
            measure(bench, docker, SMOKE_TURNS if bench.smoke else TURNS)
    return bench.finish()


def measure(bench: Bench, docker: Docker, turns: int) -> None:
    took = defaultdict[str, list[float]](list)
    for turn in range(turns + WARM_UP):
        for way in list(WAYS)[:: 1 if turn % 2 else -1]:
            ms = _timed(docker, WAYS[way])
            if turn >= WARM_UP:
                took[way].append(ms)
    for way in WAYS:
        bench.samples(f"docker run, {way}", [ms * 1e6 for ms in took[way]])
    added = statistics.median(one - other for one, other in zip(took["with a share"], took["runc"], strict=True))
    bench.bar("docker run with a share, beyond runc", added, at_most=MOST_ADDED_MS, unit="ms")


def _timed(docker: Docker, flags: tuple[str, ...]) -> float:
    began = time.perf_counter_ns()
    docker.run("--rm", *flags, "tools", "true")
    return (time.perf_counter_ns() - began) / 1e6


if __name__ == "__main__":
    sys.exit(main())
