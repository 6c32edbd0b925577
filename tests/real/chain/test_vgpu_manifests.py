"""Volcano's and HAMi's users bring their manifests, and change the scheduler's name alone.

The manifests are those of their documents. Images are the rig's own, since no other registry is reached from it.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec.yaml

from partage_plugins.vocabulary import ContainerName
from partage_plugins.vocabulary.gpu import GPU, GpuGrant
from rig.client.pods import Pod
from rig.identity.people import TEAM
from support.chain_stage import OURS, Chain
from support.isolation_stage import IMAGE, MIB, SERVING, ask, seen

NO_MEMORY = "cuMemAlloc_v2 2"
VOLCANO = """
apiVersion: v1
kind: Pod
metadata:
  name: gpu-pod1
spec:
  schedulerName: volcano
  containers:
    - name: pod1-ctr
      image: nvidia/cuda:10.1-base-ubuntu18.04
      command: ["sleep"]
      args: ["100000"]
      resources:
        limits:
          volcano.sh/vgpu-number: 1
          volcano.sh/vgpu-memory: 1024
"""
HAMI = """
apiVersion: v1
kind: Pod
metadata:
  name: gpu-pod
spec:
  schedulerName: hami-scheduler
  containers:
    - name: ubuntu-container
      image: ubuntu:18.04
      command: ["bash", "-c", "sleep 86400"]
      env: [{name: CUDA_DISABLE_CONTROL, value: "true"}]
      resources:
        limits:
          nvidia.com/gpu: 1
          nvidia.com/gpumem: 3000
          nvidia.com/gpucores: 30
"""
MUTEX = {"hami.io/gpu-scheduler-policy": "mutex,binpack"}


def submit(
    chain: Chain,
    text: str,
    name: str = "",
    limits: Mapping[str, int] | None = None,
    notes: Mapping[str, str] | None = None,
) -> Pod:
    """The manifest, with other limits (named without their domain) and annotations where they are given."""
    manifest = msgspec.yaml.decode(text)
    (container,) = manifest["spec"]["containers"]
    prefix = next(iter(container["resources"]["limits"])).rsplit("/", 1)[0] + "/"
    manifest["metadata"]["name"] = name or manifest["metadata"]["name"]
    manifest["metadata"]["annotations"] = dict(notes or {})
    manifest["spec"] |= {"schedulerName": OURS, "terminationGracePeriodSeconds": 1}
    container |= {"image": IMAGE, "command": list(SERVING), "args": []}
    if limits is not None:
        container["resources"]["limits"] = {prefix + key: value for key, value in limits.items()}
    return chain.rig.cluster.pods.create(TEAM, manifest)


def grants(chain: Chain, pod: Pod, container: str) -> tuple[GpuGrant, ...]:
    return chain.allocation(pod).of(GPU)[ContainerName(container)]


def card_bytes(chain: Chain) -> int:
    """What there is to have of each card; all are alike."""
    return chain.advertisers["n1"].cards()[0].memory_bytes


def test_a_pod_of_volcanos_has_its_part_of_a_card_and_others_what_they_say(chain: Chain) -> None:
    first = submit(chain, VOLCANO)
    first.wait_running()
    (held,) = grants(chain, first, "pod1-ctr")
    assert (held.share_milli, held.limit_milli, held.memory_bytes) == (0, 1000, 1024 * MIB)
    assert seen(first, "pod1-ctr")["total"] == 1024
    assert ask(first, "take 1100", "pod1-ctr") == NO_MEMORY
    assert ask(first, "take 400", "pod1-ctr") == "took 400"

    beside = {"volcano.sh/vgpu-use-gpuuuid": str(held.card), "nvidia.com/use-gputype": "a100,h100"}
    half = {"vgpu-number": 1, "vgpu-memory-percentage": 50, "vgpu-cores": 30}
    second = submit(chain, VOLCANO, "gpu-pod2", half, beside)
    second.wait_running()
    (part,) = grants(chain, second, "pod1-ctr")
    assert (part.card, part.share_milli, part.limit_milli) == (held.card, 300, 300)
    assert part.memory_bytes == card_bytes(chain) // 2 // MIB * MIB


def test_all_cores_of_a_card_are_had_alone_and_keep_others_off(chain: Chain) -> None:
    shared = submit(chain, VOLCANO)
    shared.wait_running()
    alone = submit(chain, VOLCANO, "alone", {"vgpu-number": 1, "vgpu-memory": 1024, "vgpu-cores": 100})
    alone.wait_running()
    (mine,) = grants(chain, alone, "pod1-ctr")
    assert mine.card != grants(chain, shared, "pod1-ctr")[0].card
    late = submit(chain, VOLCANO, "late", notes={"volcano.sh/vgpu-use-gpuuuid": str(mine.card)})
    chain.wait_why(late, "Insufficient GPU share")
    alone.delete()
    late.wait_running()
    assert grants(chain, late, "pod1-ctr")[0].card == mine.card


def test_pods_of_one_volcano_group_are_on_different_cards(chain: Chain) -> None:
    group = {"scheduling.k8s.io/group-name": "spread-job-pg", "volcano.sh/vgpu-podgroup-policy": "spread"}
    limits = {"vgpu-number": 1, "vgpu-memory": 4096, "vgpu-cores": 25}
    workers = [submit(chain, VOLCANO, f"spread-w{number}", limits, group) for number in range(4)]
    for worker in workers:
        worker.wait_running()
    assert len({grants(chain, worker, "pod1-ctr")[0].card for worker in workers}) == 4


def test_a_pod_of_hamis_is_held_to_its_part_whatever_its_environment_says(chain: Chain) -> None:
    pod = submit(chain, HAMI)
    pod.wait_running()
    (held,) = grants(chain, pod, "ubuntu-container")
    assert (held.share_milli, held.limit_milli, held.memory_bytes) == (300, 300, 3000 * MIB)
    assert seen(pod, "ubuntu-container")["total"] == 3000
    assert ask(pod, "take 4000", "ubuntu-container") == NO_MEMORY
    assert ask(pod, "take 2000", "ubuntu-container") == "took 2000"


def test_hamis_number_alone_is_cards_of_ones_own_and_its_mutex_an_empty_card(chain: Chain) -> None:
    whole = submit(chain, HAMI, "whole", {"gpu": 2})
    whole.wait_running()
    had = grants(chain, whole, "ubuntu-container")
    assert [(each.share_milli, each.memory_bytes) for each in had] == [(1000, card_bytes(chain))] * 2
    pods = [
        submit(chain, HAMI, f"mutex-{number}", {"gpu": 1, "gpumem": 1000, "gpucores": 20}, MUTEX) for number in range(3)
    ]
    for pod in pods[:2]:
        pod.wait_running()
    cards = {grants(chain, pod, "ubuntu-container")[0].card for pod in pods[:2]}
    assert len(cards | {each.card for each in had}) == 4
    chain.wait_why(pods[2], "node(s) had too few cards that hold nothing else")
