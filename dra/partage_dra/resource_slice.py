"""Builds a node's ResourceSlices from its devices, and reads the fields of existing ones. Pure.

Counters are in slices of their own. All slices of a node form one pool with one generation, and a reader waits until it
has seen all slices of the newest generation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

from partage_base.kube import Meta, Node
from partage_dra.slices import Attribute, Capacity, CounterSet, Device, Taint
from partage_plugins.api.claims import DRIVER

CONTENT: Final = "partage.dev/content"
"""Annotation with a digest of what was written, since the API server normalizes quantities."""
TAINT: Final = f"{DRIVER}/health"
_DIGITS: Final = 32
MOST_DEVICES: Final = 64
"""The limit for a slice in which a device has taints or consumes counters."""
MOST_COUNTER_SETS: Final = 8
Content = Mapping[str, Any]
"""The part of a slice's spec that differs between the node's slices."""


class Pool(Struct, frozen=True):
    generation: int = 0


class SliceSpec(Struct, frozen=True):
    pool: Pool = Pool()


class SliceMeta(Meta, frozen=True, kw_only=True):
    generation: int = 0


class ResourceSlice(Struct, frozen=True):
    """The fields of an existing slice that its writer reads."""

    metadata: SliceMeta = SliceMeta()
    spec: SliceSpec = SliceSpec()

    @property
    def version(self) -> int:
        """The object's generation, which counts writes by anyone."""
        return self.metadata.generation

    @property
    def content(self) -> str:
        return self.metadata.annotations.get(CONTENT, "")


def slice_name(node: str, number: int = 0) -> str:
    return f"{node}-{DRIVER}" + (f"-{number}" if number else "")


def contents_of(devices: Sequence[Device], counters: Sequence[CounterSet] = ()) -> tuple[Content, ...]:
    """The contents of the slices, in order; empty for no devices."""
    return (
        *({"devices": [_device(each) for each in some]} for some in _pieces(devices, MOST_DEVICES)),
        *({"sharedCounters": [_counters(each) for each in some]} for some in _pieces(counters, MOST_COUNTER_SETS)),
    )


def digest(content: Content) -> str:
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:_DIGITS]


def are_true(node: str, standing: Mapping[str, ResourceSlice], wanted: Sequence[Content]) -> bool:
    """Whether the existing slices have these contents, as one pool."""
    said = {name: each.content for name, each in standing.items()}
    generations = {each.spec.pool.generation for each in standing.values()}
    return said == {slice_name(node, number): digest(each) for number, each in enumerate(wanted)} and (
        len(generations) <= 1
    )


def slices_of(node: Node, wanted: Sequence[Content], standing: Mapping[str, ResourceSlice]) -> list[dict[str, Any]]:
    """The complete objects, which replace existing ones of the same names."""
    generation = max((each.spec.pool.generation for each in standing.values()), default=0) + 1
    name = node.metadata.name
    owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node.metadata.uid, "controller": True}
    pool = {"name": name, "generation": generation, "resourceSliceCount": len(wanted)}
    return [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {
                "name": slice_name(name, number),
                "ownerReferences": [owner],
                "annotations": {CONTENT: digest(content)},
                **_version(standing.get(slice_name(name, number))),
            },
            "spec": {"driver": DRIVER, "nodeName": name, "pool": pool, **content},
        }
        for number, content in enumerate(wanted)
    ]


def _version(before: ResourceSlice | None) -> dict[str, str]:
    return {} if before is None else {"resourceVersion": before.metadata.resource_version}


_Each = TypeVar("_Each")


def _pieces(things: Sequence[_Each], most: int) -> Iterator[Sequence[_Each]]:
    return (things[start : start + most] for start in range(0, len(things), most))


def _device(device: Device) -> dict[str, Any]:
    capacity = {name: _capacity(value) for name, value in device.capacity.items()}
    said: dict[str, Any] = {"name": device.name, "capacity": capacity}
    said["attributes"] = {name: _attribute(value) for name, value in device.attributes.items()}
    if device.taints:
        said["taints"] = [_taint(each) for each in device.taints]
    if device.counters is None:
        said["allowMultipleAllocations"] = True
    else:
        drawn = {name: {"value": str(value.value)} for name, value in device.capacity.items()}
        said["consumesCounters"] = [{"counterSet": device.counters, "counters": drawn}]
    return said


def _counters(each: CounterSet) -> dict[str, Any]:
    return {"name": each.name, "counters": {name: {"value": str(value)} for name, value in each.counters.items()}}


def _attribute(value: Attribute) -> dict[str, Attribute]:
    if isinstance(value, bool):
        return {"bool": value}
    return {"int": value} if isinstance(value, int) else {"string": value}


def _capacity(capacity: Capacity) -> dict[str, Any]:
    whole = str(capacity.value)
    if not capacity.step:
        return {"value": whole}
    valid = {"min": str(capacity.least), "max": whole, "step": str(capacity.step)}
    return {"value": whole, "requestPolicy": {"default": whole, "validRange": valid}}


def _taint(taint: Taint) -> dict[str, str]:
    return {"key": TAINT, "value": taint.value, "effect": taint.effect}
