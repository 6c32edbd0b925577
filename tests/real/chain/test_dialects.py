"""Manifests of other systems run after changing only the scheduler's name.

The dialects' conformance rows test what a manifest requests, and unit/gpu_allocator which card it gets; here each
dialect goes once through all components. The manifests are those of its documents. Images are the rig's own, since the
rig reaches no other registry.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec.yaml
import pytest

from partage_plugins.api import GPU, ContainerName
from rig.client.pods import Pod
from rig.identity.people import TEAM
from support.chain_stage import OURS, Chain
from support.isolation_stage import IMAGE, MIB, SERVING, ask, seen

NO_MEMORY: Final = "cuMemAlloc_v2 2"
KUBESHARE_1: Final = """
apiVersion: v1
kind: Pod
metadata:
  name: pod1
  annotations:
    "kubeshare/gpu_request": "0.4"
    "kubeshare/gpu_limit": "1.0"
    "kubeshare/gpu_mem": "3145728000"
spec:
  schedulerName: kubeshare-scheduler
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: tensorflow/tensorflow:1.15.2-gpu-py3
    command: ["sh", "-c", "curl -s https://example.com/script.py | python3 -"]
"""
KUBESHARE_2: Final = """
apiVersion: v1
kind: Pod
metadata:
  name: mnist
  labels:
    "sharedgpu/gpu_request": "0.5"
    "sharedgpu/gpu_limit": "1.0"
spec:
  schedulerName: kubeshare-scheduler
  restartPolicy: Never
  containers:
    - name: main
      image: mnist:test
      command: ["sh", "-c", "sleep infinity"]
      imagePullPolicy: Always
"""
VOLCANO: Final = """
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
HAMI: Final = """
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
KUBEGPU: Final = "pod.alpha/DeviceInformation"
WHOLE_MIB: Final = 80_000
"""Less than a card's memory, but more than any part that is handed out."""


def submit(chain: Chain, text: str, name: str = "", **words: dict[str, str]) -> Pod:
    """Create the manifest under another name, with additional labels or annotations if given."""
    manifest: dict[str, Any] = msgspec.yaml.decode(text)
    meta, spec = manifest["metadata"], manifest["spec"]
    meta |= {kind: {**meta.get(kind, {}), **more} for kind, more in words.items()}
    meta["name"] = name or meta["name"]
    spec |= {"schedulerName": OURS, "terminationGracePeriodSeconds": 1}
    (container,) = spec["containers"]
    container |= {"image": IMAGE, "command": list(SERVING), "args": [], "imagePullPolicy": "IfNotPresent"}
    return chain.rig.cluster.pods.create(TEAM, manifest)


@pytest.mark.parametrize(
    ("text", "share", "limit", "mib"),
    [
        (KUBESHARE_1, 400, 1000, 3000),
        (KUBESHARE_2, 500, 1000, None),
        (VOLCANO, 0, 1000, 1024),
        (HAMI, 300, 300, 3000),
    ],
    ids=["kubeshare 1", "kubeshare 2", "volcano", "hami"],
)
def test_a_pod_of_their_documents_is_held_to_its_part_whatever_its_environment_says(
    chain: Chain, text: str, share: int, limit: int, mib: int | None
) -> None:
    """A pod that does not request memory gets the share's fraction of it."""
    pod = submit(chain, text).wait_running()
    container = pod.object["spec"]["containers"][0]["name"]
    grant = chain.grant(pod, container)
    has = grant.memory_bytes // MIB
    assert (grant.share_milli, grant.limit_milli, has) == (share, limit, mib or has)
    assert seen(pod, container)["total"] == has
    assert ask(pod, f"take {has}", container) == NO_MEMORY, "the card's own context counts too"
    assert ask(pod, "take 400", container) == "took 400"


def test_who_writes_what_a_dialect_refuses_is_told_so_on_the_pod(chain: Chain) -> None:
    wrong = submit(chain, KUBESHARE_1, "wrong", annotations={"kubeshare/gpu_limit": "0.3"})
    nan = submit(chain, KUBESHARE_2, "nan", labels={"sharedgpu/gpu_limit": "NaN"})
    mixed = submit(chain, KUBESHARE_1, "mixed", labels={"sharedgpu/gpu_limit": "1.0", "sharedgpu/gpu_mem": "1"})
    wrong.wait_why("gpu_request is '0.4'; allowed: a number from 0 to kubeshare/gpu_limit, which is 0.3")
    nan.wait_why("sharedgpu/gpu_limit is 'NaN'")
    assert "kubeshare-v1-dialect and kubeshare-v2-dialect" in mixed.wait_why("two dialects")


def job(chain: Chain, name: str, cards: int) -> Pod:
    """A job as DLWorkspace writes one for KubeGPU: linked cards, their number in an annotation, and no resources."""
    said = {
        "podname": name,
        "requests": {"alpha.gpu/gpu-generate-topology": 1},
        "runningcontainer": {"main": {"requests": {"alpha.gpu/numgpu": cards}}},
    }
    return chain.pod(name, limits={}, annotations={KUBEGPU: json.dumps(said)})


def in_groups(chain: Chain, name: str, *paths: str) -> Pod:
    requests = {f"alpha/grpresource/{path}/cards": 1 for path in paths}
    said = {"runningcontainer": {"main": {"requests": requests}}}
    return chain.pod(name, limits={}, annotations={KUBEGPU: json.dumps(said)})


def cards_of(chain: Chain, pod: Pod) -> set[str]:
    grants = chain.allocation(pod).of(GPU)[ContainerName("main")]
    assert all(grant.share_milli == 1000 for grant in grants)
    return {str(grant.card) for grant in grants}


def test_a_job_has_whole_cards_that_are_joined_and_the_next_waits_for_such(chain: Chain) -> None:
    """On each of two nodes, two cards are linked by NVLink."""
    pair, single = job(chain, "pair", 2), job(chain, "single", 1)
    for pod in (pair, single):
        pod.wait_running()
    assert pair.node != single.node
    assert (len(cards_of(chain, pair)), len(cards_of(chain, single))) == (2, 1)
    assert seen(pair)["total"] > WHOLE_MIB
    waits = job(chain, "waits", 2)
    waits.wait_why("0/2 nodes are available")
    single.delete()
    waits.wait_running()
    assert waits.node != pair.node


def test_groups_that_no_node_has_keep_a_pod_waiting_and_say_so(chain: Chain) -> None:
    """The two cards of a node are close to different processors, but linked."""
    together = in_groups(chain, "together", "gpugrp1/0/gpugrp0/0/gpu/0", "gpugrp1/0/gpugrp0/0/gpu/1")
    together.wait_why("0/2 nodes are available: 2 node(s) had too few cards behind one PCIe switch")
    linked = in_groups(chain, "linked", "gpugrp1/0/gpugrp0/0/gpu/0", "gpugrp1/0/gpugrp0/1/gpu/0").wait_running()
    assert len(cards_of(chain, linked)) == 2
