"""The allocation that results from a resize request: other amounts on the same cards. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from partage_plugins.api import (
    GPU,
    Allocation,
    ContainerName,
    ContainerRequest,
    GpuGrant,
    GpuPart,
    Kind,
    PodRequest,
)
from partage_plugins.api.gpu import larger
from partage_plugins.api.keys import GPU_RESOURCES
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import claim_of
from partage_plugins.codecs.resize import Wish
from partage_plugins.errors import Refused
from partage_scheduler.objects import ApiPod

_AGAIN: Final = "delete the pod, and create it with other amounts"


def wanted_of(pod: ApiPod, held: Allocation, affinity_terms: Mapping[ContainerName, Wish], part: GpuPart) -> Allocation:
    """With the next `gen`; raises `Refused` for what can never be resized."""
    containers: dict[ContainerName, Any] = dict(held.containers)
    for name, wish in affinity_terms.items():
        grants = _resizable(pod, held, name, part)
        containers[name] = {**containers[name], GPU.name: _resized(name, grants, wish, part)}
    return replace(held, gen=held.gen + 1, containers=containers)


def most(one: Allocation, other: Allocation) -> Allocation:
    """What counts while either may be in force: the larger amounts of each grant, otherwise the first allocation."""
    containers: dict[ContainerName, Mapping[Kind, object]] = dict(one.containers)
    others = other.of(GPU)
    for name, grants in one.of(GPU).items():
        pairs = zip(grants, others[name], strict=True)
        containers[name] = {**containers[name], GPU.name: tuple(larger(*pair) for pair in pairs)}
    return replace(one, containers=containers)


def grows(held: Allocation, wanted: Allocation) -> bool:
    return most(held, wanted) != held


def as_request(asked: PodRequest, wanted: Allocation) -> PodRequest:
    """The request of a new pod for exactly these amounts on exactly these cards."""
    grants = wanted.of(GPU)
    own = (each for each in asked.containers if claim_of(each.name) is None)
    return replace(asked, containers=tuple(_exactly(each, grants.get(each.name, ())) for each in own))


def _exactly(each: ContainerRequest, grants: Sequence[GpuGrant]) -> ContainerRequest:
    ask = each.of(GPU)
    if ask is None or not grants:
        return each
    first = grants[0]
    wanted = replace(
        ask,
        share_milli=first.share_milli,
        limit_milli=first.limit_milli,
        memory_bytes=first.memory_bytes,
        cards=tuple(grant.card for grant in grants),
    )
    return replace(each, asks=tuple((kind, wanted if kind == GPU.name else other) for kind, other in each.asks))


def _resizable(pod: ApiPod, held: Allocation, name: ContainerName, part: GpuPart) -> tuple[GpuGrant, ...]:
    """The container's grants; refused if a node can't change them, or another dialect than ours requested them."""
    if GPU.name in held.budgets_of(name):
        raise Refused(f"container {name} uses a budget, which is not resized; {_AGAIN}")
    grants = held.of(GPU).get(name, ())
    if not grants:
        if pod.spec.resource_claims:
            raise Refused(f"container {name} has its cards by a claim, which is not resized; {_AGAIN}")
        raise Refused(f"container {name} has no share of partage; it is one of {', '.join(held.of(GPU)) or 'none'}")
    spec = next(each for each in (*pod.spec.containers, *pod.spec.init_containers) if each.name == name)
    if not GPU_RESOURCES & spec.resources.limits.keys():
        raise Refused(f"container {name} asks in another dialect than partage.dev/, and is not resized; {_AGAIN}")
    if grants[0].role == "init":
        raise Refused(f"container {name} is an init container, which ends by itself; resize the others")
    if not any(GPU.promises(grant, part) for grant in grants):
        raise Refused(f"container {name} has whole cards and no limits that could be changed; {_AGAIN}")
    return grants


def _resized(name: ContainerName, grants: Sequence[GpuGrant], wish: Wish, part: GpuPart) -> tuple[GpuGrant, ...]:
    share = None if wish.share_milli is None else _each(name, wish.share_milli, "milli", len(grants))
    memory = None if wish.memory_bytes is None else _each(name, wish.memory_bytes, "bytes", len(grants))
    if share is not None and share > WHOLE_MILLI:
        raise Refused(f"container {name} wants {share} milli of a card, which has {WHOLE_MILLI}")
    if memory is not None and any(grant.movable for grant in grants):
        raise Refused(f"container {name} has movable memory, of which the amount is not resized; {_AGAIN}")
    found = tuple(
        replace(
            grant,
            share_milli=grant.share_milli if share is None else share,
            limit_milli=max(grant.limit_milli, share or 0),
            memory_bytes=grant.memory_bytes if memory is None else memory,
        )
        for grant in grants
    )
    if memory == 0:
        raise Refused(f"container {name} would have no memory; leave it some")
    if any(not GPU.promises(grant, part) for grant in found):
        raise Refused(f"container {name} would have a whole card, which only a new pod can be given; {_AGAIN}")
    return found


def _each(name: ContainerName, total: int, unit: str, cards: int) -> int:
    if total % cards:
        raise Refused(f"container {name} has {cards} cards, which can't divide {total} {unit} evenly")
    return total // cards
