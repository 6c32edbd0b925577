"""The SharePods of KubeShare's documents run in containers on simulated cards, with all components.

The manifests are written as in those documents, with the images' own names; the rig's registry provides images under
these, with an `nvidia-smi` that lists the cards. `DEMO` fetches no script, and `ADVANCED` names a node of the rig's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec.yaml
import pytest

from partage_plugins.api import GPU, Namespace
from partage_plugins.api.gpu import Tags
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.codecs import decode_allocation
from rig.client.resources import LEASES
from rig.identity.people import OUR_NAMESPACE, SHAREPODS, TEAM
from rig.images.bases import compiled
from support.chain_stage import EXCLUDING, QUICK, Chain
from support.isolation_stage import image
from support.scheduler_process import shown
from support.sharepods import SHAREPODS_PATH, Stage, controller_of, installed, uninstalled
from support.simgpu_stage import CLIENT

IMAGES: Final = ("nvidia/cuda:9.0-base", "tensorflow/tensorflow:1.15.2-gpu-py3")
DEMO: Final = """
apiVersion: kubeshare.nthu/v1
kind: SharePod
metadata:
  name: pod1
  annotations:
    "kubeshare/gpu_request": "0.4"
    "kubeshare/gpu_limit": "1.0"
    "kubeshare/gpu_mem": "3145728000"
spec:
  terminationGracePeriodSeconds: 0
  containers:
  - name: tf
    image: tensorflow/tensorflow:1.15.2-gpu-py3
    command: ["sh", "-c", "while true; do sleep 1; done"]
  restartPolicy: OnFailure
"""
SPECIFICATION: Final = """
apiVersion: kubeshare.nthu/v1
kind: SharePod
metadata:
  name: sharepod1
  annotations:
    "kubeshare/gpu_request": "0.5" # required if allocating GPU
    "kubeshare/gpu_limit": "1.0" # required if allocating GPU
    "kubeshare/gpu_mem": "1073741824" # required if allocating GPU # 1Gi, in bytes
    "kubeshare/sched_affinity": "red" # optional
    "kubeshare/sched_anti-affinity": "green" # optional
    "kubeshare/sched_exclusion": "blue" # optional
spec: # PodSpec
  containers:
  - name: cuda
    image: nvidia/cuda:9.0-base
    command: ["nvidia-smi", "-L"]
    resources:
      limits:
        cpu: "1"
        memory: "500Mi"
"""
ADVANCED: Final = """
apiVersion: kubeshare.nthu/v1
kind: SharePod
metadata:
  name: sharepod1
  annotations:
    "kubeshare/gpu_request": "0.5"
    "kubeshare/gpu_limit": "1.0"
    "kubeshare/gpu_mem": "1073741824" # 1Gi, in bytes
    "kubeshare/GPUID": "abcde"
spec: # PodSpec
  nodeName: n2
  containers:
  - name: cuda
    image: nvidia/cuda:9.0-base
    command: ["nvidia-smi", "-L"]
    resources:
      limits:
        cpu: "1"
        memory: "500Mi"
"""


_NVIDIA_SMI: Final = b"#!/bin/sh\nexec /usr/bin/cards\n"


@pytest.fixture(scope="module")
def served(lasting_stage: Chain) -> Iterator[None]:
    """The cluster serves the SharePod kind."""
    cluster = lasting_stage.rig.cluster
    installed(cluster)
    yield
    uninstalled(cluster)


@pytest.fixture
def stage(chain: Chain, served: None) -> Iterator[Stage]:
    cluster = chain.rig.cluster
    lists = {"/usr/bin/cards": compiled(CLIENT, flags=("-std=gnu11", "-ldl")), "/usr/bin/nvidia-smi": _NVIDIA_SMI}
    for name in IMAGES:
        chain.rig.registry.push(image().with_files(lists), name)
    with shown(controller_of(cluster, chain.root, *QUICK[:6])) as controller:
        controller.start()
        made = Stage(cluster)
        yield made
        clear(made)
    cluster.api.delete(LEASES.at(OUR_NAMESPACE, SHAREPODS.name))


@pytest.fixture
def excluding(stage: Stage) -> Iterator[Stage]:
    """A namespace that the operator lists for exclusion labels."""
    stage.cluster.create_namespace(EXCLUDING)
    made = Stage(stage.cluster, EXCLUDING)
    yield made
    clear(made)
    stage.cluster.delete_namespaces(EXCLUDING)


def clear(stage: Stage) -> None:
    names = [share["metadata"]["name"] for share in stage.cluster.api.list(SHAREPODS_PATH.at(stage.namespace))]
    for name in names:
        stage.delete(name)
    for name in names:
        stage.wait_gone(name)


def submit(stage: Stage, text: str, name: str, **annotations: str) -> None:
    """Create the manifest under another name, with other values of KubeShare's."""
    manifest: dict[str, Any] = msgspec.yaml.decode(text)
    manifest["metadata"]["name"] = name
    manifest["metadata"]["annotations"] |= {f"kubeshare/{key}": value for key, value in annotations.items()}
    stage.create(manifest)


def wait_running(stage: Stage, name: str) -> None:
    def runs(share: Any) -> bool:
        return bool(share.get("status", {}).get("PodStatus", {}).get("phase") == "Running")

    stage.wait("says that it runs", name, runs)


def wait_listed(stage: Stage, name: str) -> None:
    """Wait until its program has listed the cards and exited with 0: it is restarted again and again."""

    def is_done(share: Any) -> bool:
        (said,) = share.get("status", {}).get("PodStatus", {}).get("containerStatuses", ({},))
        ends = (said.get(state, {}).get("terminated", {}) for state in ("state", "lastState"))
        return any(end.get("exitCode") == 0 for end in ends)

    stage.wait("has listed its cards", name, is_done)


def test_its_other_manifests_run_with_tags_and_placed_by_hand(stage: Stage) -> None:
    submit(stage, ADVANCED, "by-hand")
    submit(stage, SPECIFICATION, "sharepod1", sched_exclusion="")
    submit(stage, SPECIFICATION, "keeps-others-off")
    submit(stage, ADVANCED, "beside", gpu_request="0.3")
    for name in ("by-hand", "sharepod1", "beside"):
        wait_listed(stage, name)
    words = "have the operator name namespace team-a in PARTAGE_GPU_EXCLUSION_NAMESPACES"
    stage.wait("says who may exclude", "keeps-others-off", lambda share: words in str(share.get("status")))
    assert stage.wait_placed("by-hand") == stage.wait_placed("beside") == ("n2", "abcde")
    assert stage.card("by-hand") == stage.card("beside") != stage.card("sharepod1")
    printed = stage.cluster.kubectl.run("describe", "sharepod", "-n", TEAM, "by-hand")
    assert "SharePod synced successfully" in printed
    pod, first = stage.pod("by-hand"), stage.share("by-hand")["status"]["PodObjectMeta"]["uid"]
    assert pod is not None
    pod.delete(0)
    stage.wait("has another pod", "by-hand", lambda share: share["status"]["PodObjectMeta"]["uid"] != first)
    wait_listed(stage, "by-hand")
    assert stage.card("by-hand") == stage.card("beside")


def test_its_first_manifest_runs_untouched_where_the_operator_lets_it_exclude_others(
    excluding: Stage, stage: Stage
) -> None:
    excluding.cluster.kubectl.run("apply", "-n", EXCLUDING, "-f", "-", stdin=SPECIFICATION)
    wait_listed(excluding, "sharepod1")
    pod = excluding.pod("sharepod1")
    assert pod is not None
    ((grant,),) = decode_allocation(pod.annotations[ALLOCATION], [GPU]).of(GPU).values()
    said = Tags(affinity="red", anti_affinity="green", exclusion="blue")
    assert grant.tags == said.in_namespace(Namespace(EXCLUDING))
    assert str(grant.card) in pod.logs(), "it sees the card that it shares with nobody"
    submit(stage, DEMO, "pod1")
    wait_running(stage, "pod1")
    assert stage.card("pod1") != grant.card
