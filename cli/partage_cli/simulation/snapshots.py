"""Reads a snapshot of a live cluster: what `kubectl get nodes,pods -A -o json` prints.

Nodes count that have an inventory with cards we hand out. Pods that ask for cards of ours are the workload, whether
they run or wait. All other pods on those nodes stay where they are: their CPU and memory are not there for the replay.
What the cluster itself made of the workload is `now`. Signatures are not looked at: nothing is started by this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Final

import msgspec

from partage_cli.simulation.measures import Meter
from partage_cli.simulation.results import Point
from partage_cli.simulation.snapshot_objects import Object, Objects, pod_of
from partage_cli.simulation.typical import typical_of
from partage_cli.simulation.workloads import FleetNode, Workload, demand_milli
from partage_plugins.codecs import decode_allocation, decode_inventory
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError, PartageError, Refused
from partage_plugins.sides.scheduler import SchedulerSide
from partage_plugins.vocabulary import GPU, CardId, NodeName, PodRequest
from partage_plugins.vocabulary.keys import ALLOCATION, INVENTORY
from partage_scheduler.decision import needs_of, room_of
from partage_scheduler.decision.rooms import minus

_ENDED: Final = ("Succeeded", "Failed")


@dataclass(frozen=True)
class Snapshot:
    """A cluster as it was."""

    workload: Workload
    now: Point
    notes: tuple[str, ...]
    """What was left out, and why; for people."""


@dataclass
class _Reading:
    side: SchedulerSide
    nodes: dict[NodeName, FleetNode] = field(default_factory=dict[NodeName, FleetNode])
    asking: list[tuple[Object, PodRequest]] = field(default_factory=list[tuple[Object, PodRequest]])
    notes: list[str] = field(default_factory=list[str])


def read_snapshot(file: Path, side: SchedulerSide) -> Snapshot:
    """The workload of a cluster; `side` reads what pods ask for."""
    return snapshot_of(file.read_bytes(), str(file), side)


def snapshot_of(raw: bytes, file: str, side: SchedulerSide) -> Snapshot:
    """The same, of what stands in a file of that name."""
    objects = _objects(raw, file)
    reading = _Reading(side)
    for each in objects:
        if each.kind == "Node":
            _read_node(reading, each)
    _refuse_doubled_cards(file, reading.nodes)
    for each in objects:
        if each.kind == "Pod" and each.status.phase not in _ENDED:
            _read_pod(reading, each)
    return _whole(file, reading)


def _objects(raw: bytes, file: str) -> tuple[Object, ...]:
    """All that is there; as large as it is, unlike an annotation, since the user's own kubectl wrote it."""
    try:
        raw.decode()
    except UnicodeDecodeError:
        raise DecodeError(
            file, path="$", value="text that is not Unicode", allowed="JSON as kubectl prints it"
        ) from None
    return Reader(file, Objects).read_part(raw, at="$").items


def _read_node(reading: _Reading, node: Object) -> None:
    name, text = NodeName(node.metadata.name), node.metadata.annotations.get(INVENTORY)
    if text is None:
        return
    try:
        found = FleetNode(
            name, decode_inventory(text, [GPU]), room_of(node.status.allocatable, path="$.status.allocatable")
        )
    except PartageError as error:
        reading.notes.append(f"node {name} is left out: {error}")
        return
    if found.cards:
        reading.nodes[name] = found


def _read_pod(reading: _Reading, found: Object) -> None:
    name = f"{found.metadata.namespace}/{found.metadata.name}"
    pod = pod_of(found)
    try:
        needs = needs_of(pod, found.spec.overhead)
        request = reading.side.requests(pod)
    except PartageError as error:
        reading.notes.append(f"pod {name} is left out: {error}")
        return
    if request.containers:
        reading.asking.append((found, msgspec.structs.replace(request, needs=needs)))
        return
    node = reading.nodes.get(NodeName(found.spec.node_name))
    if node is not None:
        reading.nodes[node.name] = msgspec.structs.replace(node, total=minus(node.total, needs))


def _whole(file: str, reading: _Reading) -> Snapshot:
    requests = tuple(request for _, request in reading.asking)
    workload = Workload(origin=PurePath(file).name, nodes=tuple(reading.nodes.values()), requests=requests)
    if not workload.nodes:
        raise Refused(f"{file}: no node has an inventory with cards to hand out; do advertisers run in this cluster?")
    return Snapshot(workload, _now(workload, reading.asking, reading.notes), tuple(reading.notes))


def _now(workload: Workload, asking: Sequence[tuple[Object, PodRequest]], notes: list[str]) -> Point:
    """What the allocations on the pods amount to."""
    meter = Meter(workload.nodes, typical_of(workload.requests))
    arrived = sum(demand_milli(request) for request in workload.requests)
    for pod, request in asking:
        text = pod.metadata.annotations.get(ALLOCATION)
        if text is None:
            continue
        try:
            meter.take(decode_allocation(text, [GPU]), request)
        except PartageError as error:
            notes.append(f"what pod {pod.metadata.namespace}/{pod.metadata.name} holds now is not counted: {error}")
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
