"""One card, two containers with memory of their own: each sees its slice, and one of them asks for more than that.

The cluster is real, the card is simulated; the containers' program loads libcuda and libnvidia-ml as any program does.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from rig.client.pods import Pod
from rig.client.wait import until
from rig.rig import RigSettings, running
from support.crishim_stage import NODE
from support.isolation_stage import IsolationStage, ask, furnish, memory, node_settings

GIB: Final = 1024
TRAIN_MIB: Final = 8 * GIB
SERVE_MIB: Final = 2 * GIB
WORDS: Final = {"cuMemAlloc_v2 2": "✗ CUDA_ERROR_OUT_OF_MEMORY", "cuMemAlloc_v2 3": "✗ CUDA_ERROR_NOT_INITIALIZED"}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell(pod: Pod, words: str) -> None:
    """What a program in the container does, and how that ends."""
    answer = ask(pod, words)
    say(f"   {pod.name}$ memory {words:<10}  {WORDS.get(answer, answer)}")


def look_inside(pod: Pod) -> None:
    """How large the card is, as the container is told."""
    view = {name: int(value) >> 20 for name, value in (word.split("=") for word in ask(pod, "view").split())}
    say(f"   {pod.name}$ nvidia-smi would show {view['nvml_used']} of {view['nvml_total']} MiB, free {view['free']}")


def show(stage: IsolationStage) -> None:
    """What an administrator sees on the node, once the driver was asked after all that."""
    known = sum(held.used_bytes for each in stage.told().containers for held in each.cards)
    until("the driver was asked", lambda: None if (stage.told().cards[0].used_bytes or 0) > known else "not yet")
    say(f"   {NODE}$ partage top --once")
    for line in stage.partage("top", "--once").rstrip().splitlines():
        say(f"   | {line}")


def share_it(train: Pod, serve: Pod) -> None:
    """Each has a card of its own, as far as it can tell."""
    say(f"\n2. Two pods with signed allocations for one card: {TRAIN_MIB // GIB} GiB and {SERVE_MIB // GIB} GiB of it")
    for pod in (train, serve):
        pod.wait_running()
        look_inside(pod)


def fill_it(stage: IsolationStage, train: Pod, serve: Pod) -> None:
    """The card has tens of gigabytes left all the while."""
    say("\n3. They fill them, and one of them goes on")
    tell(train, "take 6000")
    tell(serve, "take 1400")
    tell(serve, "take 400")
    tell(train, "take 1000")
    show(stage)


def lose_the_broker(stage: IsolationStage, train: Pod, serve: Pod) -> None:
    say("\n4. The broker, which counts all that, is killed, and another one is started")
    began = time.monotonic()
    stage.kill_broker()
    stage.start_broker()
    say(f"   it answers again after {time.monotonic() - began:.1f} s; no program has ended")
    tell(serve, "take 400")
    tell(train, "free")
    tell(train, "take 1000")


def lower_it(stage: IsolationStage, train: Pod) -> None:
    say("\n5. Root on the node lowers a limit while the container runs: nothing is taken away, nothing more is given")
    say(f"   {NODE}$ partage limits {train.name} --memory 4Gi")
    for line in stage.partage("limits", train.name, "--memory", "4Gi").splitlines():
        say(f"   | {line}")
    tell(train, "take 100")
    tell(train, "free")
    tell(train, "free")
    tell(train, "take 100")


def main() -> int:
    """A node from its start, two containers to their end."""
    say("\nMemory of one card, for containers that know nothing of each other\n")
    started, key = time.monotonic(), Ed25519PrivateKey.generate()
    with running(RigSettings(nodes={NODE: node_settings(key)}), say=say) as rig:
        stage = IsolationStage(rig, key, rig.nodes[NODE].daemons["crishim"])
        furnish(stage)
        say(f"1. A cluster is ready after {time.monotonic() - started:.1f} s; its node has cards, crishim and a broker")
        train = stage.limited_pod(memory(TRAIN_MIB), what="train")
        serve = stage.limited_pod(memory(SERVE_MIB), what="serve")
        share_it(train, serve)
        fill_it(stage, train, serve)
        lose_the_broker(stage, train, serve)
        lower_it(stage, train)
    say("\n   What it promises, and what not: docs/isolation.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
