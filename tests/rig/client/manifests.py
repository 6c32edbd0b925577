"""Builders of manifests. Pure: dictionaries in, dictionaries out.

    a_pod("web", image=BUSYBOX, command=["sleep", "600"], limits={"partage.dev/gpu-milli": "500"})

Pods terminate quickly, don't restart containers, and don't pull images that are present.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypedDict, Unpack, cast

from rig.client.resources import Json

NO_IMAGE: Final = "registry.invalid/none:1"
"""For pods that no kubelet will see; it is in no registry."""
_ENDS_WITHIN_S: Final = 1


class ContainerFields(TypedDict, total=False):
    image: str
    command: Sequence[str]
    args: Sequence[str]
    env: Mapping[str, str]
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    more: Mapping[str, Any]
    """Further fields, with Kubernetes' names; they replace ours."""


class PodFields(ContainerFields, total=False):
    """Fields of a pod; a container's fields apply to its only container, `main`."""

    containers: Sequence[Json]
    """Results of `a_container`, instead of `main`."""
    init_containers: Sequence[Json]
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    node: str
    scheduler: str
    restart: str
    spec: Mapping[str, Any]
    """Further fields of the spec, with Kubernetes' names; they replace ours."""


def a_container(name: str = "main", **said: Unpack[ContainerFields]) -> Json:
    return {
        "name": name,
        "image": said.get("image", NO_IMAGE),
        "imagePullPolicy": "IfNotPresent",
        **{field: value for field, value in said.items() if field in ("command", "args")},
        "env": [{"name": name, "value": value} for name, value in said.get("env", {}).items()],
        "resources": {field: value for field, value in said.items() if field in ("requests", "limits")},
        **said.get("more", {}),
    }


def a_pod(name: str, **said: Unpack[PodFields]) -> Json:
    """A pod; its namespace is given at creation."""
    return {"apiVersion": "v1", "kind": "Pod", "metadata": _metadata(name, said), "spec": _spec(said)}


def _metadata(name: str, said: PodFields) -> Json:
    return {
        "name": name,
        "labels": dict(said.get("labels", {"app": name})),
        "annotations": dict(said.get("annotations", {})),
    }


def _spec(said: PodFields) -> Json:
    choices = {"nodeName": said.get("node"), "schedulerName": said.get("scheduler")}
    return {
        "containers": list(said.get("containers", ())) or [_main(said)],
        "initContainers": list(said.get("init_containers", ())),
        "restartPolicy": said.get("restart", "Never"),
        "terminationGracePeriodSeconds": _ENDS_WITHIN_S,
        **{field: choice for field, choice in choices.items() if choice is not None},
        **said.get("spec", {}),
    }


def _main(said: PodFields) -> Json:
    fields = {field: value for field, value in said.items() if field in ContainerFields.__annotations__}
    return a_container(**cast("ContainerFields", fields))
