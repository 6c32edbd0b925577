"""From `kubectl apply` to the first kernel of a pod that shares a card, and to the first instruction of a plain one.

One cluster with all our components: the shared pod passes our scheduler, its signed allocation, crishim and the preload
library before it has its card; the plain pod uses kube-scheduler and none of them. Both have the same image and run on
the same nodes, alternately; the figure is the difference between the first and the second.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from bench.harness import Bench
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from rig.client.manifests import a_pod
from rig.client.resources import PODS, Json
from rig.client.wait import until
from rig.identity.people import TEAM
from support.chain_stage import NODES, OURS, Chain, chained
from support.machine_image import with_driver_program

PAIRS, SMOKE_PAIRS = 30, 1
WARM_UP, SMOKE_WARM_UP = 1, 0
SMOKE_NODES: Final = NODES[:1]
PROGRAM: Final = Path(__file__).parents[1] / "real/chain/c/first.c"
FIRST: Final = "/usr/bin/first"
IMAGE: Final = "first"
MOST_MS: Final = 500.0
_NS_IN_MS: Final = 1e6


def shared(name: str) -> Json:
    """A pod with a quarter of a card that launches a kernel."""
    limits = {GPU_MILLI: "250", GPU_MEMORY: "1Gi"}
    return a_pod(name, image=IMAGE, command=[FIRST, "kernel"], limits=limits, scheduler=OURS)


def plain(name: str) -> Json:
    return a_pod(name, image=IMAGE, command=[FIRST, "start"])


def waited_ms(chain: Chain, manifest: Json, folder: Path) -> float:
    """The time of one pod, from the start of kubectl to its program's output."""
    name, cluster = manifest["metadata"]["name"], chain.rig.cluster
    file = folder / "pod.json"
    file.write_text(json.dumps({**manifest, "metadata": {**manifest["metadata"], "namespace": TEAM}}))
    began_ns = time.time_ns()
    cluster.kubectl.run("apply", "-f", str(file))
    until(f"{name} has ended", lambda: _why_not_ended(chain, name), 60)
    said = cluster.api.text(PODS.at(TEAM, name, "log")).strip()
    cluster.api.delete(PODS.at(TEAM, name), {"gracePeriodSeconds": 0})
    if not said.isdigit():
        raise AssertionError(f"{name} said {said!r}")
    return (int(said) - began_ns) / _NS_IN_MS


def _why_not_ended(chain: Chain, name: str) -> str | None:
    status = chain.rig.cluster.api.get(PODS.at(TEAM, name))["status"]
    return None if status.get("phase") in {"Succeeded", "Failed"} else str(status)


def main() -> int:
    bench = Bench.from_argv("chain")
    pairs, warm_up, nodes = (SMOKE_PAIRS, SMOKE_WARM_UP, SMOKE_NODES) if bench.smoke else (PAIRS, WARM_UP, NODES)
    with tempfile.TemporaryDirectory() as root, chained(Path(root), say=_quiet, nodes=nodes) as chain:
        chain.rig.registry.push(with_driver_program(FIRST, PROGRAM), IMAGE)
        rounds = [
            (
                waited_ms(chain, plain(f"plain-{number}"), Path(root)),
                waited_ms(chain, shared(f"shared-{number}"), Path(root)),
            )
            for number in range(pairs + warm_up)
        ][warm_up:]
    without, with_card = ([pair[place] for pair in rounds] for place in (0, 1))
    bench.figure("plain_pod_ms", statistics.median(without))
    bench.figure("shared_pod_ms", statistics.median(with_card))
    added = statistics.median(with_card) - statistics.median(without)
    bench.bar("a shared pod's first kernel, beyond a plain pod's start", added, at_most=MOST_MS, unit="ms")
    return bench.finish()


def _quiet(_line: str) -> None:
    pass


if __name__ == "__main__":
    sys.exit(main())
