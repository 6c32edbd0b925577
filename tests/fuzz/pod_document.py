"""Any bytes are a pod of one machine or one refusal in a line; a pod that is written as YAML is read as the same."""

from __future__ import annotations

from typing import Final

from partage_cli.machine.pods.document import read_pod, yaml_of
from partage_plugins.errors import PartageError

SEEDS: Final = (
    b"{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}",
    b"""kind: Pod
spec:
  containers:
  - name: c
    image: i
    resources: {limits: {cpu: 0.5, partage.dev/gpu-milli: 3}}
    volumeMounts: [{name: v, mountPath: /v}]
    env: [{name: A, value: '1'}]
  volumes: [{name: v, emptyDir: {}}]
""",
    b"kind: Pod\nspec: {hostPID: true, nodeSelector: {a: b}, restartPolicy: Never, containers: [{name: c, image: i}]}",
)
DICTIONARY: Final = (
    b"initContainers",
    b"securityContext",
    b"hostPath: {path: /a}",
    b"valueFrom",
    b"&a ",
    b"*a",
    b"---\n",
    b"!!binary ",
    b"<<: ",
    b"0x1F",
    b".inf",
    b"2026-11-23",
    b"yes",
)
_LONGEST: Final = 700


def target(data: bytes) -> str:
    try:
        pod, notes = read_pod(data)
    except PartageError as error:
        said = str(error)
        if len(said) >= _LONGEST or not said.isprintable():
            raise AssertionError(f"a refusal that is no short, printable line: {said!r}") from error
        return f"refused: {said[:30]}"
    if not all(note.isprintable() for note in notes):
        raise AssertionError(f"notes that move cursors: {notes!r}")
    again, more = read_pod(yaml_of(pod).encode())
    if again != pod or more:
        raise AssertionError(f"it changed on its way: {pod!r}, then {again!r}")
    return f"read, {len(notes)} left out"
