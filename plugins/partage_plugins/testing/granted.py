"""Containers that were granted something: what node plugins are asked to adjust."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from partage_plugins.codecs.allocation import decode_allocation, decode_grants, encode_allocation
from partage_plugins.codecs.inventory import decode_inventory
from partage_plugins.codecs.parts import read_parts
from partage_plugins.testing import examples
from partage_plugins.testing.check import Broken, Case
from partage_plugins.testing.scheduler_stage import SchedulerStage
from partage_plugins.vocabulary.allocation import Allocation
from partage_plugins.vocabulary.containers import Container, Granted
from partage_plugins.vocabulary.inventory import Inventory
from partage_plugins.vocabulary.kinds import AnyKind
from partage_plugins.vocabulary.names import ContainerName, Kind
from partage_plugins.vocabulary.pods import Pod


class PlacedPod(NamedTuple):
    """A pod that the scheduler side placed: its allocation as text, and the inventory of its node, as text."""

    pod: Pod
    allocation: str
    inventory: str


class GrantedContainer(NamedTuple):
    """A container with its grants and the node's inventory of their kinds, as raw JSON."""

    container: Container
    granted: Granted

    def typed(self, kinds: Iterable[AnyKind]) -> Granted:
        """The grants as plugins see them."""
        return typed(self.granted, tuple(kinds))


def typed(granted: Granted, kinds: tuple[AnyKind, ...]) -> Granted:
    """Raw grants and parts, decoded as the host does."""
    grants = {kind: raw for kind, raw in granted.grants.items() if isinstance(raw, msgspec.Raw)}
    parts = {kind: raw for kind, raw in granted.parts.items() if isinstance(raw, msgspec.Raw)}
    types = {kind.name: kind.part for kind in kinds}
    return Granted(
        gen=granted.gen,
        grants=decode_grants(grants, kinds),
        parts=read_parts("inventory", parts, types, at="$.kinds"),
    )


def placed_pods(case: Case) -> list[PlacedPod]:
    """The subject's pods, each on the first node on which it fits."""
    stage = SchedulerStage(case).told()
    placed: list[PlacedPod] = []
    for pod in case.subject.pods:
        found = stage.placed(pod)
        if found is None:
            raise Broken(f"pod {pod.ref.name} fits on no inventory of the subject")
        slot, allocation = found
        placed.append(PlacedPod(pod, encode_allocation(allocation), case.subject.inventories[slot]))
        stage.give_back(slot, allocation)
    return placed


def containers_of(placed: PlacedPod) -> list[GrantedContainer]:
    """The containers of a pod that hold grants."""
    allocation: Allocation = decode_allocation(placed.allocation, ())
    inventory: Inventory = decode_inventory(placed.inventory, ())
    return [
        GrantedContainer(
            examples.container(name, pod=placed.pod.ref, annotations=placed.pod.annotations),
            Granted(gen=allocation.gen, grants=grants, parts=inventory.kinds),
        )
        for name, grants in allocation.containers.items()
    ]


def granted_containers(case: Case) -> list[GrantedContainer]:
    """What the scheduler side grants, or where there is none what the subject says."""
    subject = case.subject
    if subject.scheduler is not None and subject.kind is not None:
        return [container for placed in placed_pods(case) for container in containers_of(placed)]
    grants = {Kind(kind): msgspec.Raw(text.encode()) for kind, text in subject.grants.items()}
    parts = decode_inventory(subject.inventories[0], ()).kinds
    return [GrantedContainer(examples.container(ContainerName("main")), Granted(gen=1, grants=grants, parts=parts))]
