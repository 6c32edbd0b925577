"""Reads a snapshot of a live cluster: the output of `kubectl get nodes,pods -A -o json`.

It uses the nodes whose inventories have cards that we allocate. Pods that request our cards are the workload, running
or pending. All other pods on those nodes stay, so their CPU and memory are unavailable to the replay. `now` is the
cluster's own placement of the workload. Signatures are not verified: nothing is started by this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TypeVar

import msgspec

from partage_cli.simulation.measures import Meter
from partage_cli.simulation.results import Point
from partage_cli.simulation.typical import typical_of
from partage_cli.simulation.workloads import FleetNode, Workload, demand_milli
from partage_plugins.api import GPU, CardId, NodeName, PodRequest
from partage_plugins.api.keys import ALLOCATION, INVENTORY
from partage_plugins.codecs import decode_allocation, decode_inventory
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError, PartageError, Refused
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision.free_resources import minus
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.predicates import room_of
from partage_scheduler.requests import RequestReader

T = TypeVar("T", ApiNode, ApiPod)


class _Kind(msgspec.Struct, frozen=True):
    kind: str


class _List(msgspec.Struct, frozen=True):
    items: tuple[msgspec.Raw, ...]


@dataclass(frozen=True)
class Snapshot:
    """The state of a cluster."""

    workload: Workload
    now: Point
    notes: tuple[str, ...]
    """What was left out, and why; for people."""


@dataclass
class _Reading:
    requests: RequestReader
    nodes: dict[NodeName, FleetNode] = field(default_factory=dict[NodeName, FleetNode])
    asking: list[tuple[ApiPod, PodRequest]] = field(default_factory=list[tuple[ApiPod, PodRequest]])
    notes: list[str] = field(default_factory=list[str])


def read_snapshot(file: Path, framework: SchedulerFramework) -> Snapshot:
    """The workload of a cluster; `framework` reads the pods' requests."""
    return snapshot_of(file.read_bytes(), str(file), framework)


def snapshot_of(raw: bytes, file: str, framework: SchedulerFramework) -> Snapshot:
    """The same, from the contents of a file of that name."""
    objects = _objects(raw, file)
    reading = _Reading(RequestReader(framework.requests))
    for node in _of_kind("Node", ApiNode, objects, file):
        _read_node(reading, node)
    _refuse_doubled_cards(file, reading.nodes)
    for pod in _of_kind("Pod", ApiPod, objects, file):
        if not pod.is_terminal:
            _read_pod(reading, pod)
    return _whole(file, reading)


def _objects(raw: bytes, file: str) -> tuple[msgspec.Raw, ...]:
    """All objects. There is no size limit as for annotations, because the user's own kubectl wrote the file."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raise DecodeError(
            file, path="$", value="text that is not Unicode", allowed="JSON as kubectl prints it"
        ) from None
    return Reader(file, _List).read_part(raw, at="$").items


def _of_kind(kind: str, type_: type[T], objects: Sequence[msgspec.Raw], file: str) -> Iterator[T]:
    kinds, reader = Reader(file, _Kind), Reader(file, type_)
    for place, each in enumerate(objects):
        at = f"$.items[{place}]"
        if kinds.read_part(each, at=at).kind == kind:
            yield reader.read_part(each, at=at)


def _read_node(reading: _Reading, node: ApiNode) -> None:
    text = node.metadata.annotations.get(INVENTORY)
    if text is None:
        return
    try:
        found = FleetNode(node.name, decode_inventory(text, [GPU]), room_of(node))
    except PartageError as error:
        reading.notes.append(f"node {node.name} is left out: {error}")
        return
    if found.cards:
        reading.nodes[node.name] = found


def _read_pod(reading: _Reading, pod: ApiPod) -> None:
    try:
        request = reading.requests.of(pod)
    except PartageError as error:
        reading.notes.append(f"pod {pod.namespace}/{pod.name} is left out: {error}")
        return
    if request.containers:
        reading.asking.append((pod, request))
        return
    node = reading.nodes.get(NodeName(pod.node))
    if node is not None:
        reading.nodes[node.name] = msgspec.structs.replace(node, total=minus(node.total, request.needs))


def _whole(file: str, reading: _Reading) -> Snapshot:
    requests = tuple(request for _, request in reading.asking)
    workload = Workload(origin=PurePath(file).name, nodes=tuple(reading.nodes.values()), requests=requests)
    if not workload.nodes:
        raise Refused(f"{file}: no node has an inventory with cards to hand out; do advertisers run in this cluster?")
    return Snapshot(workload, _now(workload, reading.asking, reading.notes), tuple(reading.notes))


def _now(workload: Workload, asking: Sequence[tuple[ApiPod, PodRequest]], notes: list[str]) -> Point:
    """The sum of the pods' present allocations."""
    meter = Meter(workload.nodes, typical_of(workload.requests))
    arrived = sum(demand_milli(request) for request in workload.requests)
    for pod, request in asking:
        text = pod.metadata.annotations.get(ALLOCATION)
        if text is None:
            continue
        try:
            meter.take(decode_allocation(text, [GPU]), request)
        except PartageError as error:
            notes.append(f"what pod {pod.namespace}/{pod.name} holds now is not counted: {error}")
    return Point(
        arrived=round(100 * arrived / meter.capacity_milli),
        allocated=meter.allocated_percent,
        fragments=meter.fragment_percent,
    )


def _refuse_doubled_cards(file: str, nodes: Mapping[NodeName, FleetNode]) -> None:
    seen: dict[CardId, NodeName] = {}
    for node in nodes.values():
        for card in node.cards:
            other = seen.setdefault(CardId(card.id), node.name)
            if other != node.name:
                raise Refused(f"{file}: card {card.id} is on nodes {other} and {node.name}; a card has one node")
