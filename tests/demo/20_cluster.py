"""A real cluster on this machine whose kubelet speaks through crishim: a pod gets its card, forgeries are refused.

All programs are the released ones: etcd, kube-apiserver, kubelet, containerd, runc. The scheduler's part is done by
hand, and the cards are device nodes without a device.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from rig.client.binding import bind
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.resources import SECRETS
from rig.errors import Refused
from rig.identity.people import SCHEDULER
from rig.rig import Rig, RigSettings, running
from support.crishim_stage import NODE, TEAM, Stage, allocation, install_devices, node_settings, whole
from unit.gpu_node.nodes import FIRST, SECOND

LOOK: Final = "echo I run on a real kubelet, with $(ls /dev | grep nvidia[0-9] || echo no card); sleep 600"


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def show_cluster(rig: Rig, seconds: float) -> None:
    info = rig.cluster.nodes.get(NODE)["status"]["nodeInfo"]
    say(f"1. A cluster is ready after {seconds:.1f} s, at {rig.control.server}")
    say(f"   node {NODE}: kubelet {info['kubeletVersion']}, {info['containerRuntimeVersion']}, {info['kernelVersion']}")
    say("   kubelet speaks to /run/partage/crishim.sock, and crishim to containerd")


def alices(rig: Rig, name: str) -> Pod:
    """A pod of an ordinary user, for the scheduler partage."""
    manifest = a_pod(name, image="glibc", command=["sh", "-c", LOOK], scheduler="partage")
    return rig.cluster.as_user("alice").pods.create(TEAM, manifest)


def run_with_a_card(rig: Rig, key: Ed25519PrivateKey) -> Pod:
    """Bound by hand, as the scheduler will do it: node, allocation and signature in one request."""
    say("\n2. alice makes a pod for the scheduler partage, whose part is done by hand here")
    started = time.monotonic()
    pod = alices(rig, "encoder")
    rig.cluster.bind(pod, NODE, allocation(pod, whole(FIRST)), signed_by=key)
    pod.wait_running()
    where = f"on {pod.node}, at {pod.object['status']['podIP']}"
    say(f"   bound and running {time.monotonic() - started:.1f} s later {where}")
    say(f"   allocation {pod.annotations[ALLOCATION]}")
    say(f"   signature  {pod.annotations[SIGNATURE][:40]}…")
    say(f"   it wrote:  {pod.logs().strip()}")
    return pod


def run_without(rig: Rig) -> None:
    """A pod that asks for nothing gets nothing, and is not held up."""
    say("\n3. A pod without an allocation names all cards, as images may")
    manifest = a_pod(
        "greedy", image="glibc", command=["sh", "-c", LOOK], env={"NVIDIA_VISIBLE_DEVICES": "all"}, node=NODE
    )
    pod = rig.cluster.as_user("alice").pods.create(TEAM, manifest)
    pod.wait_running()
    say(f"   it wrote:  {pod.logs().strip()}")
    say(f"   its NVIDIA_VISIBLE_DEVICES is {pod.exec('printenv', 'NVIDIA_VISIBLE_DEVICES').strip()}")


def show_forgeries(rig: Rig, key: Ed25519PrivateKey, honest: Pod) -> None:
    """What alice can try with annotations, and what kubelet says of what others forge."""
    say("\n4. Only the scheduler writes allocations; what is forged all the same does not start")
    stolen = {name: honest.annotations[name] for name in (ALLOCATION, SIGNATURE)}
    copied = alices(rig, "copied")
    denied(
        {
            "alice writes the encoder's allocation on another pod of hers": lambda: copied.annotate(stolen),
            "alice takes the encoder's allocation off, so that its card looks free": lambda: honest.annotate(
                {ALLOCATION: None}
            ),
        }
    )
    bind(rig.cluster.as_account(SCHEDULER).api, copied, NODE, stolen)
    refused("somebody who may bind gives it to that pod", copied)
    changed = alices(rig, "changed")
    rig.cluster.bind(changed, NODE, allocation(changed, whole(SECOND)), signed_by=Ed25519PrivateKey.generate())
    refused("an allocation that somebody else signed", changed)
    taken = alices(rig, "taken")
    rig.cluster.bind(taken, NODE, allocation(taken, whole(FIRST)), signed_by=key)
    refused("a card that the encoder has, well signed", taken)


def refused(what: str, pod: Pod) -> None:
    say(f"   {what}\n      ✗ {pod.wait_waiting('CreateContainerError')}")


def show_others(rig: Rig) -> None:
    """Real identities mean that somebody is told no."""
    say("\n5. No identity may do what is not its business")
    alice, kubelet = rig.cluster.as_user("alice"), rig.cluster.as_node(NODE)
    denied(
        {
            "alice annotates a node": lambda: alice.nodes.annotate(NODE, {"partage.dev/inventory": "{}"}),
            f"{NODE} reads all secrets of her team": lambda: kubelet.api.list(SECRETS.at(TEAM)),
        }
    )


def denied(attempts: Mapping[str, Callable[[], object]]) -> None:
    for what, attempt in attempts.items():
        try:
            attempt()
        except Refused as no:
            say(f"   {what}\n      ✗ {no}")
            continue
        raise SystemExit(f"demo: {what}: was not refused")


def main() -> int:
    say("partage, on real Kubernetes and a real runtime\n")
    key, started = Ed25519PrivateKey.generate(), time.monotonic()
    with running(RigSettings(nodes={NODE: node_settings(key)}), say=say) as rig:
        install_devices(rig.nodes[NODE].machine)
        show_cluster(rig, time.monotonic() - started)
        honest = run_with_a_card(rig, key)
        run_without(rig)
        show_forgeries(rig, key, honest)
        show_others(rig)
        stage = Stage(rig, key, rig.nodes[NODE].daemons["crishim"])
        held = {name: value for name, value in stage.metrics().items() if "held_total" in name}
        say("\n6. What crishim counted")
        for name, value in sorted(held.items()):
            say(f"   {name} {value:.0f}")
        ended = time.monotonic()
    say(f"\n   All of it is gone {time.monotonic() - ended:.1f} s later. A cluster for yourself: make rig-up")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
