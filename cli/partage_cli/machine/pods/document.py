"""A pod in YAML, as Kubernetes has it, becomes a pod of one machine; and the other way. Pure.

What has no meaning on one machine is taken out and noted by its path. What would silently be otherwise than it is in
Kubernetes is refused by its path, with what to do. A document that is read here runs in Kubernetes unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
import msgspec.yaml

from partage_cli.machine.pods.fields import APART, REFUSED, WITHOUT_MEANING, holds_anyway
from partage_cli.machine.pods.pod import Pod
from partage_cli.machine.pods.record import Restart
from partage_cli.machine.pods.yaml_text import read_mapping
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError, Refused

WHAT: Final = "pod"
SCHEDULER: Final = "partage-scheduler"
_RESTARTS: Final[Mapping[str, Restart]] = {"Always": "always", "OnFailure": "on-failure", "Never": "no"}
_TEMPLATES: Final = frozenset(
    ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController")
)
_LIMITED: Final = frozenset(("cpu", "memory"))
_reader: Final = Reader(WHAT, Pod)


def read_pod(raw: bytes) -> tuple[Pod, tuple[str, ...]]:
    """The pod, and what was taken out, for people; raises `DecodeError` or `Refused`."""
    document = read_mapping(raw, WHAT)
    _require_pod(document)
    kept, noted = _Sieve().sieved(document)
    return _consistent(_reader.read(msgspec.json.encode(kept))), tuple(noted)


def restart_in(pod: Pod) -> Restart:
    """What the pod says of it, in docker's words."""
    return _RESTARTS[pod.spec.restart_policy]


def yaml_of(pod: Pod) -> str:
    """As `kubectl apply` takes it."""
    return msgspec.yaml.encode(_object(pod)).decode()


def json_of(pod: Pod) -> bytes:
    return msgspec.json.format(msgspec.json.encode(_object(pod)), indent=2) + b"\n"


def _object(pod: Pod) -> dict[str, Any]:
    """With what Kubernetes would take otherwise where it is not said."""
    made: dict[str, Any] = {"apiVersion": pod.api_version, "kind": pod.kind} | msgspec.to_builtins(pod)
    made["spec"] = {"schedulerName": SCHEDULER} | made["spec"]
    for container in (*made["spec"].get("initContainers", ()), *made["spec"]["containers"]):
        container.setdefault("imagePullPolicy", "IfNotPresent")
    return made


def _require_pod(document: Mapping[str, Any]) -> None:
    kind = document.get("kind")
    if isinstance(kind, str) and kind in _TEMPLATES:
        raise Refused(
            f"a {kind} needs a cluster that keeps it; one machine runs pods: take what stands under its template, with "
            "apiVersion: v1 and kind: Pod"
        )
    if kind != "Pod":
        raise _wrong("$.kind", repr(kind), "Pod")


class _Sieve:
    """Walks a pod as it was written; steps into lists do not count in `fields`' paths."""

    def __init__(self) -> None:
        self._noted: list[str] = []

    def sieved(self, document: Mapping[str, Any]) -> tuple[object, list[str]]:
        return self._kept(document, "$", ""), self._noted

    def _kept(self, value: object, path: str, field: str) -> object:
        if isinstance(value, dict) and field not in APART:
            found = {key: self._field(inner, f"{path}.{key}", f"{field}.{key}") for key, inner in value.items()}
            return {key: inner for key, inner in found.items() if inner is not None}
        if isinstance(value, dict):  # a user's own names
            return {key: str(inner) if isinstance(inner, float) else inner for key, inner in value.items()}
        if isinstance(value, list):
            return [self._kept(inner, f"{path}[{number}]", field) for number, inner in enumerate(value)]
        return value

    def _field(self, value: object, path: str, field: str) -> object:
        """None where it is taken out; an empty field of Kubernetes is one that is not there."""
        name = field.replace(".initContainers.", ".containers.")
        if value is None or name == ".spec.schedulerName" or holds_anyway(name, value):
            return None
        if name in REFUSED:
            raise DecodeError(WHAT, path=path, value=_short(value), allowed=REFUSED[name])
        if name in WITHOUT_MEANING:
            self._noted.append(f"{path[2:]} has no meaning on one machine and is left out")
            return None
        return self._kept(value, path, name)


def _consistent(pod: Pod) -> Pod:
    """What types don't say: names that must be different, and names that must be there."""
    spec = pod.spec
    volumes = [volume.name for volume in spec.volumes]
    containers = [*spec.init_containers, *spec.containers]
    for what, names in (("volumes", volumes), ("containers", [each.name for each in containers])):
        doubled = next((name for number, name in enumerate(names) if name in names[:number]), None)
        if doubled is not None:
            raise _wrong(f"$.spec.{what}", f"two named {doubled}", "a name for each")
    for volume in spec.volumes:
        if (volume.host_path is None) == (volume.empty_dir is None):
            raise _wrong(f"$.spec.volumes ({volume.name})", "both or neither", "one of hostPath and emptyDir")
    for container in containers:
        for name in (*container.resources.limits, *container.resources.requests):
            if name not in _LIMITED and "/" not in name:
                allowed = f"{' and '.join(sorted(_LIMITED))}, and shares of cards: nothing holds others here"
                raise _wrong(f"$.spec.containers ({container.name}).resources", name, allowed)
        for mount in container.volume_mounts:
            if mount.name not in volumes:
                allowed = "the name of one of spec.volumes"
                raise _wrong(f"$.spec.containers ({container.name}).volumeMounts", mount.name, allowed)
    return pod


def _short(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=repr)[:120].decode(errors="replace")


def _wrong(path: str, value: str, allowed: str) -> DecodeError:
    return DecodeError(WHAT, path=path, value=value, allowed=allowed)
