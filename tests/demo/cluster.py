"""The whole chain: pods that share cards are placed by the scheduler, started by crishim, and limited to their parts.

The cluster is real and has two nodes; the cards are simulated. Only the forger in this demonstration binds pods by
hand.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_plugins.api import PodUid
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import PODS
from rig.client.wait import until
from rig.identity.people import TEAM
from support.chain_stage import BOARDS, OURS, Chain, chained
from support.chart import CHART, INTO, RELEASE, UNCHECKED, helm_in
from support.isolation_stage import ask

NONE_NAMED: Final = "default-scheduler"
"""The scheduler of a pod that names none."""
WORDS: Final = {"cuMemAlloc_v2 2": "✗ CUDA_ERROR_OUT_OF_MEMORY"}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def created(chain: Chain, name: str, milli: int, gib: int, **more: str) -> Pod:
    limits = {GPU_MILLI: str(milli), GPU_MEMORY: f"{gib}Gi", **more}
    say(f"   $ kubectl apply -f {name}.yaml   # {', '.join(f'{key}: {value}' for key, value in limits.items())}")
    return chain.pod(name, limits=limits, scheduler=NONE_NAMED)


def tell(pod: Pod, words: str) -> None:
    """Runs an action in the container, and prints its outcome."""
    answer = ask(pod, words)
    say(f"   {pod.name}$ memory {words:<10}  {WORDS.get(answer, answer)}")


def install(chain: Chain, home: Path) -> None:
    """Installs the chart without its pods: the daemons are processes here, with the chart's accounts."""
    pods = ("keys.enabled=false", "installer.enabled=false", "advertiser.enabled=false", "scheduler.replicas=0")
    values = ("mutation.enabled=true", *pods, UNCHECKED)
    say(f"   $ helm install {RELEASE} manifests/chart {' '.join(INTO)} --set {','.join(values)}")
    kubectl = chain.rig.cluster.kubectl
    helm_in(home, kubectl.kubeconfig).run("install", RELEASE, CHART, *INTO, "--take-ownership", values=values)
    until("pods get the scheduler's name", lambda: _why_no_name(chain))
    say("   From now on pods that ask for shares need not name their scheduler")


def _why_no_name(chain: Chain) -> str | None:
    pod = a_pod("asked", limits={GPU_MILLI: "1"})
    made = chain.rig.cluster.api.create(PODS.at(TEAM), pod, {"dryRun": "All"})
    return None if made["spec"]["schedulerName"] == OURS else "the policy is not in force"


def show_placed(chain: Chain, pod: Pod) -> None:
    pod.wait_running(within_s=90)
    grant = chain.grant(pod)
    gib = grant.memory_bytes >> 30
    say(f"   {pod.name} runs on {pod.node}: {grant.share_milli} milli and {gib} GiB of {grant.card[:12]}…, signed")


def share(chain: Chain) -> None:
    say("\n2. Two pods ask for part of a card each; the scheduler puts them on the same one")
    train, serve = created(chain, "train", 600, 8), created(chain, "serve", 300, 2)
    for pod in (train, serve):
        show_placed(chain, pod)
    say("   Each is held to its part, whatever is free on the card")
    tell(train, "take 6000")
    tell(serve, "take 1500")
    tell(serve, "take 1500")


def bring_a_board(chain: Chain) -> None:
    say("\n3. A pod asks for a board of somebody else's plugin beside its part of a card: one node must have both")
    both = created(chain, "both", 500, 4, **{BOARDS: "1"})
    show_placed(chain, both)
    say(f"   {both.name}$ echo $FPGA_BOARDS        {both.exec('/bin/sh', '-c', 'echo $FPGA_BOARDS').strip()}")


def wait_for_room(chain: Chain) -> None:
    """A pod that fits nowhere shows the reason, and is placed when there is room."""
    say("\n4. A pod that fits nowhere is told why, in one sentence")
    holders = [created(chain, f"whole-{number}", 1000, 8) for number in range(2)]
    for pod in holders:
        show_placed(chain, pod)
    waits = created(chain, "waits", 800, 8)
    say(f"   | {waits.wait_why('nodes are available')}")
    say(f"   $ partage explain {waits.namespace}/{waits.name}")
    for line in chain.partage("explain", f"{waits.namespace}/{waits.name}").rstrip().splitlines():
        say(f"   | {line}".rstrip())
    say(f"   {holders[0].name} ends")
    began = time.monotonic()
    holders[0].delete_and_wait()
    show_placed(chain, waits)
    say(f"   {time.monotonic() - began:.1f} s after that")


def forge(chain: Chain) -> None:
    """A user who may bind pods, but lacks the scheduler's key."""
    say("\n5. A user who may bind pods gives one of them the allocation of another, signed with an own key")
    train = next(pod for pod in chain.rig.cluster.pods.made if pod.name == "train")
    allocation = chain.allocation(train)
    forged = chain.pod("forged", limits={GPU_MILLI: "600"}, scheduler="nobody")
    chain.rig.cluster.bind(
        forged, allocation.node, replace(allocation, pod=PodUid(forged.uid)), signed_by=Ed25519PrivateKey.generate()
    )
    say(f"   | {forged.wait_waiting('CreateContainerError')}")


def main() -> int:
    say("\nThe whole chain: from kubectl apply to limits in force\n")
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as root, chained(Path(root), say=say) as chain:
        say(
            f"1. A cluster is ready after {time.monotonic() - started:.1f} s: two nodes with two cards and a board each"
        )
        install(chain, Path(root))
        share(chain)
        bring_a_board(chain)
        wait_for_room(chain)
        forge(chain)
    say("\n   How pods are placed: docs/scheduler.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
