"""What a rig costs: from nothing to nodes that are ready, to a pod that runs, and until all is gone."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.harness import Bench
from rig.client.manifests import a_pod
from rig.control.settings import FOR_BENCHMARKS
from rig.machine.cleanup import processes_of
from rig.rig import Rig, RigSettings, running

ROUNDS: Final = 5
SMOKE_ROUNDS: Final = 1
TWO_NODES_S: Final = 30
_KIB: Final = 1 << 10


class Times:
    def __init__(self) -> None:
        self.taken: dict[str, list[float]] = {}

    @contextmanager
    def of(self, what: str) -> Generator[None]:
        started = time.perf_counter_ns()
        yield
        self.taken.setdefault(what, []).append(time.perf_counter_ns() - started)


def quiet(_: str) -> None:
    """Progress is not the result."""


def api_server_alone(times: Times) -> None:
    """The reference: what no cluster can be quicker than."""
    rig = running(RigSettings(nodes={}, control=FOR_BENCHMARKS), say=quiet)
    with times.of("reference: etcd and kube-apiserver alone serve"):
        rig.__enter__()
    rig.__exit__(None, None, None)


def two_nodes(times: Times) -> tuple[bool, float]:
    """Whether both nodes were real and ready, and the memory of everything in MiB."""
    context = running(say=quiet)
    with times.of("two nodes are ready"):
        rig = context.__enter__()
    ready = [rig.cluster.nodes.condition(name, "Ready")["status"] for name in ("n1", "n2")]
    versions = {rig.cluster.nodes.get(name)["status"]["nodeInfo"]["kubeletVersion"] for name in ("n1", "n2")}
    run_pods(rig, times)
    memory = sum(_resident_mib(pid) for pid in processes_of(rig.folder))
    with times.of("all of it is gone"):
        context.__exit__(None, None, None)
    return ready == ["True", "True"] and versions == {"v1.36.2"}, memory


def run_pods(rig: Rig, times: Times) -> None:
    """The first brings its image along; the second shows what a pod costs."""
    for what in ("a first pod runs", "a second pod runs"):
        with times.of(what):
            pod = rig.cluster.pods.create(
                "team-a", a_pod(what.replace(" ", "-"), image="busybox", command=["sleep", "99"])
            )
            pod.wait_running()


def main() -> int:
    bench = Bench.from_argv("rig", libraries=["cryptography"])
    times, found = Times(), []
    for _ in range(SMOKE_ROUNDS if bench.smoke else ROUNDS):
        api_server_alone(times)
        found.append(two_nodes(times))
    bench.engaged("both nodes were real and ready", all(engaged for engaged, _ in found))
    timings = {what: bench.samples(what, taken) for what, taken in times.taken.items()}
    bench.figure("resident_mib", max(memory for _, memory in found))
    seconds = timings["two nodes are ready"].median_us / 1e6
    bench.bar("two nodes are ready from nothing", seconds, at_most=TWO_NODES_S, unit="s")
    return bench.finish()


def _resident_mib(pid: int) -> float:
    """Counts what processes share once for each, so it is an upper bound."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return 0
    found = (line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(next(found, "0")) / _KIB


if __name__ == "__main__":
    raise SystemExit(main())
