"""One file with a pod runs on one machine and in a cluster, unchanged, and its programs see the same limits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec.yaml
import pytest

from rig.identity.people import TEAM
from support.chain_stage import chained
from support.isolation_stage import IMAGE, SERVING
from support.isolation_stage import image as memory_image
from support.machine_stage import MachineStage

pytestmark = pytest.mark.timeout(300)
POD: Final = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: train
  labels: {{app: train}}
  annotations:
    partage.dev/limit-milli: "800"
spec:
  schedulerName: partage-scheduler
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  initContainers:
  - name: prepare
    image: {IMAGE}
    command: [sh, -c, 'echo ready > /work/prepared']
    volumeMounts: [{{name: work, mountPath: /work}}]
  containers:
  - name: main
    image: {IMAGE}
    command: [{SERVING[0]}, serve]
    env: [{{name: GREETING, value: "one file, both ways"}}]
    volumeMounts: [{{name: work, mountPath: /work}}]
    resources:
      limits: {{partage.dev/gpu-milli: "500", partage.dev/gpu-memory: 4Gi, memory: 256Mi}}
  volumes:
  - name: work
    emptyDir: {{}}
"""
LOOKS: Final = (
    (SERVING[0], "ask", "view"),
    (SERVING[0], "ask", "take 3000"),
    (SERVING[0], "ask", "take 2000"),
    ("sh", "-c", "echo $GREETING"),
    ("cat", "/work/prepared"),
    ("cat", "/proc/sys/kernel/hostname"),
)
SEEN: Final = ("took 3000", "cuMemAlloc_v2 2", "one file, both ways", "ready", "train")
Execute = Callable[..., str]


def test_one_file_runs_both_ways_and_sees_the_same(stage: MachineStage, tmp_path: Path) -> None:
    stage.registry.push(memory_image(), IMAGE)
    stage.machine.write("/run/pod.yaml", POD)
    stage.partage("run", "-d", "-f", "/run/pod.yaml")
    here = looked(lambda *argv: stage.partage("exec", "train", "--", *argv))
    with chained(tmp_path, say=print, nodes=("n1",)) as chain:
        pod = chain.rig.cluster.pods.create(TEAM, msgspec.yaml.decode(POD))
        pod.wait_running()
        there = looked(pod.exec)
    assert here == there
    assert tuple(here[1:]) == SEEN
    assert "total=4294967296" in here[0]


def looked(execute: Execute) -> list[str]:
    """What programs in the container see."""
    return [execute(*argv).strip() for argv in LOOKS]
