"""Containers with grants, as input for node plugins' adjust hook."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from partage_plugins.api.containers import Container, Granted
from partage_plugins.api.kinds import AnyKind
from partage_plugins.api.names import ContainerName, Kind
from partage_plugins.codecs.allocation import decode_allocation, decode_grants, encode_allocation
from partage_plugins.codecs.inventory import decode_inventory
from partage_plugins.codecs.parts import read_parts
from partage_plugins.testing import examples
from partage_plugins.testing.check import Broken, Case
from partage_plugins.testing.scheduler_stage import SchedulerStage


class GrantedContainer(NamedTuple):
    """A container with its grants and the node's inventory of their kinds, as raw JSON."""

    container: Container
    granted: Granted

    def typed(self, kinds: tuple[AnyKind, ...]) -> Granted:
        """The grants and parts as plugins see them, decoded as by the host."""
        grants = {kind: raw for kind, raw in self.granted.grants.items() if isinstance(raw, msgspec.Raw)}
        parts = {kind: raw for kind, raw in self.granted.parts.items() if isinstance(raw, msgspec.Raw)}
        types = {kind.name: kind.part for kind in kinds}
        return Granted(
            gen=self.granted.gen,
            grants=decode_grants(grants, kinds),
            parts=read_parts("inventory", parts, types, at="$.kinds"),
        )


def placed_pods(case: Case) -> Iterator[tuple[str, list[GrantedContainer]]]:
    """The allocation and containers of each pod of the subject, on the first node on which it fits."""
    stage = SchedulerStage(case).told()
    for pod in case.subject.pods:
        if (placed := stage.placed(pod)) is None:
            raise Broken(f"pod {pod.ref.name} fits on no inventory of the subject")
        stage.give_back(*placed)
        slot, text = placed[0], encode_allocation(placed[1])
        read, parts = decode_allocation(text, ()), decode_inventory(case.subject.inventories[slot], ()).kinds
        yield (
            text,
            [
                GrantedContainer(
                    examples.container(name, pod=pod.ref, annotations=pod.annotations),
                    Granted(gen=read.gen, grants=grants, parts=parts),
                )
                for name, grants in read.containers.items()
            ],
        )


def granted_containers(case: Case) -> list[GrantedContainer]:
    """Containers with the scheduler side's grants, or with the subject's own if it has no scheduler side."""
    subject = case.subject
    if subject.scheduler is not None and subject.kind is not None:
        return [container for _, containers in placed_pods(case) for container in containers]
    grants = {Kind(kind): msgspec.Raw(text.encode()) for kind, text in subject.grants.items()}
    parts = decode_inventory(subject.inventories[0], ()).kinds
    return [GrantedContainer(examples.container(ContainerName("main")), Granted(gen=1, grants=grants, parts=parts))]
