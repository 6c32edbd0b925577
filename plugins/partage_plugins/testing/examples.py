"""Builds pods, inventories and containers for subjects and authors' own tests, with defaults for all fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec.structs import replace

from partage_plugins.api.containers import Container, Runtime
from partage_plugins.api.inventory import Inventory, Ready
from partage_plugins.api.names import ContainerName, Kind, Namespace, PodName, PodUid
from partage_plugins.api.pods import Pod, PodContainer, PodRef
from partage_plugins.codecs.allocation import container_key
from partage_plugins.codecs.inventory import encode_inventory

RUNTIME: Final = Runtime(program="/usr/bin/runc", takes_cdi=True)
"""containerd 2.0 and later, where CDI is on by default."""


def pod(
    limits: Mapping[str, str] | None = None,
    *others: Mapping[str, str],
    annotations: Mapping[str, str] | None = None,
    name: str = "train",
) -> Pod:
    """A pod whose container `main` has these limits; each of `others` adds an app container, `side-1` and so on.

    `pod({"fpga.example.com/boards": "1"})` requests one board.
    """
    containers = tuple(
        PodContainer(name=ContainerName(f"side-{place}" if place else "main"), limits=dict(asked))
        for place, asked in enumerate((limits or {}, *others))
    )
    return Pod(ref=_ref(name), annotations=dict(annotations or {}), containers=containers)


def like(pod: Pod, number: int) -> Pod:
    """Another pod with the same request: its name, namespace and uid differ."""
    ref = PodRef(
        namespace=Namespace(f"team-{number}"), name=PodName(f"{pod.ref.name}-{number}"), uid=PodUid(f"uid-{number}")
    )
    return replace(pod, ref=ref)


def inventory(ready: Ready = Ready(crishim=True, broker=True), /, **kinds: object) -> str:  # noqa: B008  frozen
    """An inventory as a node writes it: `inventory(fpga={"boards": ["fpga0"]})`."""
    parts = {Kind(name.replace("_", "-")): part for name, part in kinds.items()}
    return encode_inventory(Inventory(ready=ready, kinds=parts)).decode()


def container(
    name: str = "main",
    *,
    pod: PodRef | None = None,
    attempt: int = 0,
    runtime: Runtime = RUNTIME,
    **fields: Any,  # noqa: ANN401
) -> Container:
    """A container as kubelet requests it, with its key; `fields` are any other fields of `Container`."""
    ref = pod or _ref("train")
    called = ContainerName(name)
    key = container_key(ref.uid, called, attempt)
    return Container(key=key, pod=ref, name=called, attempt=attempt, runtime=runtime, **fields)


def _ref(name: str) -> PodRef:
    return PodRef(namespace=Namespace("default"), name=PodName(name), uid=PodUid(f"uid-of-{name}"))
