"""A pod in YAML on one machine: what is read, what is left out with a note, and what is refused by its path."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from partage_cli.machine.pods import fields
from partage_cli.machine.pods.document import read_pod, restart_in
from partage_plugins.errors import PartageError

WHOLE = """
apiVersion: v1
kind: Pod
metadata:
  name: train
  labels: {app: train}
  annotations: {partage.dev/limit-milli: "500"}
  creationTimestamp: null
spec:
  schedulerName: partage-scheduler
  nodeSelector: {disk: ssd}
  tolerations: [{operator: Exists}]
  serviceAccountName: default
  hostPID: false
  initContainers:
  - name: init
    image: busybox
    terminationMessagePath: /dev/null
  containers:
  - name: main
    image: app
    livenessProbe: {httpGet: {path: /, port: 80}}
    resources: {limits: {partage.dev/gpu-milli: 300, cpu: 0.5, memory: 1Gi}}
    volumeMounts: [{name: tmp, mountPath: /tmp}]
  volumes: [{name: tmp, emptyDir: {}}]
"""


def pod_with(spec: str = "", container: str = "", metadata: str = "") -> bytes:
    parts = ", ".join(filter(None, ("name: main", "image: app", container)))
    inner = ", ".join(filter(None, (f"containers: [{{{parts}}}]", spec)))
    return f"{{apiVersion: v1, kind: Pod, metadata: {{name: x{metadata}}}, spec: {{{inner}}}}}".encode()


def test_a_pod_of_kubernetes_runs_and_what_it_leaves_is_said_by_path() -> None:
    pod, notes = read_pod(WHOLE.encode())
    assert pod.metadata.name == "train"
    assert pod.spec.containers[0].resources.limits == {"partage.dev/gpu-milli": 300, "cpu": "0.5", "memory": "1Gi"}
    assert restart_in(pod) == "always"
    assert [note.split()[0] for note in notes] == [
        "spec.nodeSelector",
        "spec.tolerations",
        "spec.serviceAccountName",
        "spec.initContainers[0].terminationMessagePath",
        "spec.containers[0].livenessProbe",
    ]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (pod_with("hostPID: true"), ("spec.hostPID", "false")),
        (pod_with(container="env: [{name: A, valueFrom: {}}]"), ("spec.containers[0].env[0].valueFrom", "value")),
        (pod_with(container="envFrom: [{secretRef: {name: a}}]"), ("spec.containers[0].envFrom", "env")),
        (pod_with("volumes: [{name: a, configMap: {name: b}}]"), ("spec.volumes[0].configMap", "hostPath")),
        (pod_with("volumes: [{name: a}]"), ("volumes (a)", "hostPath and emptyDir")),
        (pod_with("volumes: [{name: a, emptyDir: {}}, {name: a, emptyDir: {}}]"), ("two named a",)),
        (pod_with("initContainers: [{name: main, image: b}]"), ("two named main",)),
        (
            pod_with("initContainers: [{name: i, image: b, restartPolicy: Always}]"),
            ("initContainers[0].restartPolicy",),
        ),
        (pod_with(container="volumeMounts: [{name: a, mountPath: /a}]"), ("volumeMounts is a",)),
        (pod_with(container="volumeMounts: [{name: a, mountPath: /a, subPath: b}]"), ("subPath", "of its own")),
        (pod_with(container="resources: {limits: {ephemeral-storage: 1Gi}}"), ("ephemeral-storage", "cpu and memory")),
        (pod_with(container="securityContext: {runAsNonRoot: true}"), ("runAsNonRoot", "runAsUser")),
        (pod_with(container="env: [{name: A, value: 3}]"), ("env[0].value", "str")),
        (pod_with(container="env: [{name: A, value: yes}]"), ("env[0].value", "str")),
        (pod_with(container="madeUp: 3"), ("spec.containers[0]", "madeUp")),
        (pod_with(metadata=", name: y"), ("'name' twice",)),
        (b"kind: Deployment", ("a Deployment needs a cluster", "template")),
        (b"kind: Job", ("a Job needs a cluster",)),
        (b"kind: List", ("$.kind is 'List'", "Pod")),
        (b"apiVersion: v2\nkind: Pod\nspec: {containers: [{name: a, image: b}]}", ("$.apiVersion", "v1")),
        (b"kind: Pod", ("$",)),
        (b"", ("a NoneType",)),
        (b"kind: {a: [{}]}", ("$.kind",)),
        (b"- a", ("a list",)),
        (b"a: &a [x]\nb: *a", ("an alias, *a",)),
        (b"a: 1\n---\nb: 2", ("several documents",)),
        (b"[" * 64, ("nested too deep",)),
        (b"\xff", ("not Unicode",)),
        (b"x: !!python/object/apply:os.system [ls]", ("no YAML",)),
        (b"1: 2", ("a key 1",)),
        (b"a: {", ("no YAML",)),
        (b"a: " + b"x" * (256 << 10), ("too long",)),
        (b"[" + b"1," * (1 << 16) + b"]", ("too much",)),
    ],
)
def test_what_would_be_otherwise_than_it_says_is_refused_in_one_line(raw: bytes, words: Sequence[str]) -> None:
    with pytest.raises(PartageError) as refused:
        read_pod(raw)
    assert all(word in str(refused.value) for word in words), str(refused.value)
    assert str(refused.value).isprintable()


def test_what_is_said_and_is_so_anyway_is_neither_refused_nor_noted() -> None:
    said = "hostIPC: false, hostUsers: true, dnsPolicy: ClusterFirst, securityContext: {runAsNonRoot: false}"
    assert read_pod(pod_with(said, "securityContext: {allowPrivilegeEscalation: true, procMount: Default}"))[1] == ()


def test_no_field_is_both_left_out_and_refused() -> None:
    assert not fields.WITHOUT_MEANING & fields.REFUSED.keys()
