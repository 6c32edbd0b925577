"""What `partage run` takes beyond `crictl run` of the same image, and what `partage ps` takes beside `crictl ps -a`.

One machine as `partage up` makes it. crictl speaks straight to its containerd: no share, no signature, no check, no
manager; `partage run` gives its container a tenth of a card. Both make a sandbox in the same network, pull nothing, and
return when the container was started; they take turns. Then containers are there in numbers, and both list them.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bench.harness import Bench
from support.machine_image import workloads
from support.machine_stage import PARTAGE, MachineStage, machine_up

PAIRS, SMOKE_PAIRS = 30, 2
LISTED, SMOKE_LISTED = 200, 8
LISTINGS, SMOKE_LISTINGS = 21, 2
WARM_UP: Final = 1
AT_ONCE: Final = 8
IMAGE: Final = "demo"
WAITS: Final = ("sleep", "100000")
CONTAINERD: Final = "unix:///run/partage/machine/containerd.sock"
MOST_ADDED_MS: Final = 150.0
MOST_TIMES: Final = 3.0


class Runs:
    """Both ways of starting one container, each in milliseconds, and of listing all."""

    def __init__(self, stage: MachineStage) -> None:
        self._stage = stage
        crictl = str(stage.programs["crictl"])
        self._crictl = (crictl, "--runtime-endpoint", CONTAINERD, "--image-endpoint", CONTAINERD)
        self._timed(*self._crictl, "pull", IMAGE)

    def by_crictl(self, name: str) -> float:
        metadata = {"name": name, "namespace": "default", "uid": name}
        sandbox = {"metadata": metadata, "log_directory": f"/run/{name}", "linux": {}}
        container = {"metadata": {"name": "main"}, "image": {"image": IMAGE}, "command": WAITS, "log_path": "main.log"}
        self._stage.machine.write(f"/run/{name}.sandbox", json.dumps(sandbox))
        self._stage.machine.write(f"/run/{name}.container", json.dumps(container))
        took, _ = self._timed(*self._crictl, "run", f"/run/{name}.container", f"/run/{name}.sandbox")
        _, pods = self._timed(*self._crictl, "pods", "-q", "--name", name)
        self._timed(*self._crictl, "rmp", "-f", pods.strip())
        return took

    def by_partage(self, name: str) -> float:
        took, _ = self._timed(*PARTAGE, "run", "-d", "--name", name, "--share", "100", IMAGE, "--", *WAITS)
        self._timed(*PARTAGE, "rm", "-f", name)
        return took

    def fill(self, count: int) -> None:
        with ThreadPoolExecutor(AT_ONCE) as hands:
            flags = ("-d", "--network", "host", "--stop-timeout", "0")
            names = [f"listed-{number}" for number in range(count)]
            list(hands.map(lambda name: self._stage.partage("run", *flags, "--name", name, IMAGE, "--", *WAITS), names))

    def listed_by_crictl(self) -> tuple[float, int]:
        took, said = self._timed(*self._crictl, "ps", "-a")
        return took, len(said.splitlines()) - 1

    def listed_by_partage(self) -> tuple[float, int]:
        took, said = self._timed(*PARTAGE, "ps")
        return took, len(said.splitlines()) - 1

    def _timed(self, *argv: str) -> tuple[float, str]:
        began = time.perf_counter_ns()
        done = subprocess.run([*self._stage.machine.way_in, *argv], capture_output=True, text=True, check=False)
        took = (time.perf_counter_ns() - began) / 1e6
        if done.returncode:
            raise AssertionError(f"{' '.join(argv[-6:])}: {done.stderr.strip()}")
        return took, done.stdout


def main() -> int:
    bench = Bench.from_argv("run")
    with machine_up(say=_quiet) as stage:
        stage.registry.push(workloads(), IMAGE)
        runs = Runs(stage)
        measure_runs(bench, runs, SMOKE_PAIRS if bench.smoke else PAIRS)
        listed = SMOKE_LISTED if bench.smoke else LISTED
        runs.fill(listed)
        measure_lists(bench, runs, listed, SMOKE_LISTINGS if bench.smoke else LISTINGS)
    return bench.finish()


def measure_runs(bench: Bench, runs: Runs, pairs: int) -> None:
    names = [f"pair-{number}" for number in range(pairs + WARM_UP)]
    took = [(runs.by_crictl(f"crictl-{name}"), runs.by_partage(f"partage-{name}")) for name in names][WARM_UP:]
    for place, name in enumerate(("crictl run", "partage run")):
        bench.samples(name, [pair[place] * 1e6 for pair in took])
    added = statistics.median(ours - theirs for theirs, ours in took)
    bench.bar("partage run, beyond crictl run", added, at_most=MOST_ADDED_MS, unit="ms")


def measure_lists(bench: Bench, runs: Runs, listed: int, rounds: int) -> None:
    took = [(runs.listed_by_crictl(), runs.listed_by_partage()) for _ in range(rounds)]
    bench.engaged("both list all containers", all(count == listed for pair in took for _, count in pair))
    for place, name in enumerate(("crictl ps -a", "partage ps")):
        bench.samples(f"{name} of {listed}", [pair[place][0] * 1e6 for pair in took])
    theirs, ours = (statistics.median(pair[place][0] for pair in took) for place in (0, 1))
    bench.bar(f"partage ps of {listed}, over crictl ps -a", ours / theirs, at_most=MOST_TIMES, unit="times")


def _quiet(_line: str) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
