"""Plugins given as classes, in the real registry and façades."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from partage_plugins.answers import Fits, Slots
from partage_plugins.api import (
    Allocation,
    Container,
    ContainerKey,
    ContainerName,
    ContainerRequest,
    Granted,
    Inventory,
    Kind,
    KindType,
    Namespace,
    NodeName,
    PluginName,
    Pod,
    PodContainer,
    PodName,
    PodRef,
    PodRequest,
    PodUid,
    Promise,
    Resources,
    Slot,
)
from partage_plugins.api.reasons import Reason
from partage_plugins.framework import scheduler
from partage_plugins.framework.node import NodeFramework
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.hooks import hookimpl
from partage_plugins.hooks import node as node_hooks
from partage_plugins.hooks import scheduler as scheduler_hooks
from partage_plugins.registry.entry_points import Candidate
from partage_plugins.registry.registry import LoadReport, Registry


class Ask(Struct, frozen=True):
    count: int = 1


class Thing(Struct, frozen=True):
    id: str = "t0"


class Things(Struct, frozen=True):
    ids: tuple[str, ...] = ()


def all_promises(grant: Thing, part: Things | None) -> frozenset[Promise]:
    """A thing called `part…` needs its memory enforced, others need nothing."""
    del part
    return frozenset[Promise](("memory",)) if grant.id.startswith("part") else frozenset()


def plugin(**answers: object) -> type:
    """A plugin whose hooks, named without `partage_`, return these answers; an exception is raised instead."""

    def said(answer: object) -> Any:
        def hook(_: object) -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

        return hookimpl(hook)

    return type("Made", (), {f"partage_{name}": said(answer) for name, answer in answers.items()})


THING = KindType(name=Kind("thing"), request=Ask, grant=Thing, part=Things, promises=all_promises)
OTHER = KindType(name=Kind("other"), request=Ask, grant=Thing, part=Things)
OWNER = plugin(kind=THING)
NODE = NodeName("n1")
MAIN, SIDE = ContainerName("main"), ContainerName("side")


class Record(scheduler.Record):
    """The scheduler's record, from which a plugin is rebuilt."""

    def __init__(self) -> None:
        self.known: dict[Slot, tuple[NodeName, Inventory]] = {}
        self.taken: list[tuple[Slot, Allocation]] = []
        self.room: dict[Slot, tuple[Resources, Resources]] = {}

    def nodes(self) -> Iterable[tuple[Slot, NodeName, Inventory]]:
        return [(slot, node, inventory) for slot, (node, inventory) in self.known.items()]

    def allocations(self) -> Iterable[tuple[Slot, Allocation]]:
        return list(self.taken)

    def rooms(self) -> Iterable[tuple[Slot, Resources, Resources]]:
        return [(slot, total, free) for slot, (total, free) in self.room.items()]


def _itself(made: object) -> object:
    return made


def candidates(**classes: Any) -> list[Candidate]:
    """Candidates by name, as if they were installed."""
    return [Candidate(PluginName(name), "a test", partial(_itself, made)) for name, made in classes.items()]


def load_scheduler(**classes: Any) -> tuple[Registry, LoadReport]:
    registry = Registry(scheduler_hooks)
    return registry, registry.load(candidates(**classes))


def load_node(**classes: Any) -> tuple[Registry, LoadReport]:
    registry = Registry(node_hooks)
    return registry, registry.load(candidates(**classes))


def scheduler_side(record: Record | None = None, /, **classes: Any) -> SchedulerFramework:
    registry, report = load_scheduler(**classes)
    assert not report.faults
    return SchedulerFramework(registry, record or Record())


def node_side(**classes: Any) -> NodeFramework:
    registry, report = load_node(**classes)
    assert not report.faults
    return NodeFramework(registry)


def pod(*names: str, uid: str = "u1", **annotations: str) -> Pod:
    ref = PodRef(namespace=Namespace("default"), name=PodName("p"), uid=PodUid(uid))
    containers = tuple(PodContainer(name=ContainerName(name)) for name in names or ("main",))
    return Pod(ref=ref, annotations=annotations, containers=containers)


def request(*kinds: KindType[Any, Any, Any], uid: str = "u1", count: int = 1) -> PodRequest:
    asks = tuple((kind.name, Ask(count)) for kind in kinds or (THING,))
    return PodRequest(pod=pod(uid=uid).ref, containers=(ContainerRequest(name=MAIN, role="app", asks=asks),))


def allocation(*kinds: KindType[Any, Any, Any], uid: str = "u1") -> Allocation:
    grants: dict[Kind, object] = {kind.name: (Thing(),) for kind in kinds or (THING,)}
    return Allocation(gen=1, pod=PodUid(uid), node=NODE, containers={MAIN: grants})


def inventory(*kinds: KindType[Any, Any, Any]) -> Inventory:
    return Inventory(kinds={kind.name: Things(("t0", "t1")) for kind in kinds or (THING,)})


def slots(*numbers: int) -> Slots:
    return np.array(numbers, dtype=np.int32)


def verdict(*fits: bool, codes: Iterable[int] = (), reasons: tuple[str | Reason, ...] = ("no",)) -> Fits:
    given = np.array(list(codes) or [0] * len(fits), dtype=np.uint8)
    return Fits(np.array(fits, dtype=np.bool_), given, reasons)


def container(name: str = "main", **fields: Any) -> Container:
    return Container(key=ContainerKey("0" * 32), pod=pod().ref, name=ContainerName(name), **fields)


def granted(*things: str, kind: KindType[Any, Any, Any] = THING) -> Granted:
    return Granted(gen=1, grants={kind.name: tuple(Thing(thing) for thing in things)})


def granted_raw(*things: str, kind: str = "thing") -> Granted:
    raw = msgspec.json.encode([{"id": thing} for thing in things])
    return Granted(gen=1, grants={Kind(kind): msgspec.Raw(raw)}, parts={Kind(kind): msgspec.Raw(b'{"ids":["t0"]}')})
