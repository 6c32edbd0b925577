"""Shares by claims: kube-scheduler allocates them, kubelet calls its runtime directly, and limits are enforced.

The cluster is real and has one node with simulated cards. Of partage only a broker and a DRA driver run.
"""

from __future__ import annotations

import sys
import time
from typing import Final

from rig.client.pods import Pod
from rig.client.resources import DEVICE_CLASSES, RESOURCE_CLAIMS
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import TEAM
from support.claim_objects import device_class, devices, request
from support.dra_stage import DraStage, claimed
from support.isolation_stage import ask
from support.machine_image import workloads

SETTLES_S: Final = 15.0
HALF: Final = "half.gpu.partage.dev"
FLOOD: Final = ("/usr/bin/flood", "--seconds", "100000")
WORDS: Final = {"cuMemAlloc_v2 2": "✗ CUDA_ERROR_OUT_OF_MEMORY"}


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def tell(pod: Pod, words: str) -> None:
    answer = ask(pod, words)
    say(f"   {pod.name}$ memory {words:<10}  {WORDS.get(answer, answer)}")


def show_memory(stage: DraStage) -> None:
    say("\n2. A pod with a claim of 300 milli and 2 GiB of a card")
    pod = stage.pod("serve", devices(request(300, "2Gi"))).wait_running()
    (result,) = stage.claim_of(pod)["status"]["allocation"]["devices"]["results"]
    say(f"   kube-scheduler allocated {result['consumedCapacity']} of {result['device']}")
    tell(pod, "take 1500")
    tell(pod, "take 1500")
    pod.delete_and_wait()


def show_time(stage: DraStage) -> None:
    say("\n3. Two pods with claims of 700 and 300 milli want all of one card's time")
    stage.rig.registry.push(workloads(), "workloads")
    pods = {
        share: stage.pod(f"flood-{share}", devices(request(share, "4Gi")), image="workloads", command=FLOOD)
        for share in (700, 300)
    }
    for pod in pods.values():
        pod.wait_running()
    time.sleep(SETTLES_S)
    for share, pod in pods.items():
        told = stage.told(stage.claim_of(pod)["metadata"]["uid"])
        if told is None or told.cards[0].time is None:
            raise SystemExit(f"{pod.name} is not metered")
        say(f"   {pod.name} of {share} milli got {told.cards[0].time.got.s10:.0%} of the card's time")


def show_forgery(stage: DraStage) -> None:
    say("\n4. A user, and the node itself, write another allocation into a claim")
    stage.claim("forged", devices(request(300, "2Gi")))
    path = RESOURCE_CLAIMS.at(TEAM, "forged")
    result = {"request": "gpu", "driver": "gpu.partage.dev", "pool": stage.node.name, "device": "gpu-0"}
    for who in (stage.rig.cluster.as_user("alice"), stage.rig.cluster.as_node(stage.node.name)):
        status = {"allocation": {"devices": {"results": [result]}}}
        try:
            who.api.replace(f"{path}/status", {**stage.rig.cluster.api.get(path), "status": status})
        except Refused as refused:
            say(f"   | {refused.message[:140]}")
        else:
            raise SystemExit("an allocation was forged")


def show_ceiling(stage: DraStage) -> None:
    say("\n5. A class lets its claims have half of a card's time, and a claim says that it may have all")
    stage.rig.cluster.api.create(DEVICE_CLASSES.at(), device_class(500, name=HALF))
    pod = stage.pod("eager", devices(request(300, "2Gi", deviceClassName=HALF), limit_milli=1000)).wait_running()
    told = stage.told(stage.claim_of(pod)["metadata"]["uid"])
    if told is None or told.cards[0].limit_milli != 500:
        raise SystemExit(f"the claim raised the limit of its class: {told}")
    say(f"   {pod.name} has {told.cards[0].share_milli} milli for sure and {told.cards[0].limit_milli} at most")


def main() -> int:
    say("\nShares by claims: kube-scheduler allocates, kubelet speaks with containerd, limits hold\n")
    started = time.monotonic()
    with claimed(say=lambda _line: None) as stage:
        stage.wait_published()
        say(f"1. A cluster is ready after {time.monotonic() - started:.1f} s; the node's cards are devices:")
        for device in stage.devices():
            amounts = {name: each["value"] for name, each in device["capacity"].items()}
            say(f"   {device['attributes']['model']['string']:<24} {amounts}")
        show_memory(stage)
        show_time(stage)
        show_forgery(stage)
        show_ceiling(stage)
        stage.clear()
        until("nothing is left", lambda: None if not stage.specs() else str(stage.specs()))
    say("\n   How claims are made: docs/dra.md")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
