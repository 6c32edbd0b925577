"""A pod's asks for a node's cards, in the order in which they are placed.

Sidecars first, then app containers, then init containers: a pod's init containers reuse what the others will have.
Within a role, asks that are harder to place come first: many cards, then a large share.

All cards of one ask are different. A request that allows repeated cards becomes that many asks of one card each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from msgspec.structs import replace

from partage_gpu.allocator.mix import Mix, read_mix
from partage_plugins.api.gpu import GPU, GpuRequest
from partage_plugins.api.keys import MOVABLE, REPEAT_CARDS
from partage_plugins.api.kinds import Role
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import ContainerName, Namespace, grantee_in_words
from partage_plugins.api.pods import PodRequest
from partage_plugins.errors import Refused

_MOST_ASKS: Final = 512
_ORDER: Final = {"sidecar": 0, "app": 1, "init": 2}


class Ask(NamedTuple):
    """One container's request, and the policy that chooses its cards."""

    container: ContainerName
    role: Role
    request: GpuRequest
    mix: Mix


class Plan(NamedTuple):
    """A pod's asks and CPU."""

    asks: tuple[Ask, ...]
    cpu_milli: int
    mix: Mix
    """For a pod that requests no card."""

    @property
    def mixes(self) -> tuple[Mix, ...]:
        """The policies by which the pod is scored."""
        return tuple(ask.mix for ask in self.asks) or (self.mix,)


def planned(request: PodRequest, default: Mix) -> Plan:
    """The plan of a request; a policy that does not exist refuses the pod."""
    asks: list[Ask] = []
    for container in request.containers:
        wanted = container.of(GPU)
        if wanted is not None:
            mix = default if wanted.policy is None else read_mix(wanted.policy)
            asks += _asks_of(Ask(container.name, container.role, wanted, mix))
    if len(asks) > _MOST_ASKS:
        raise Refused(f"the pod asks for {len(asks)} grants one by one; at most {_MOST_ASKS} are placed")
    if len(asks) > 1:
        asks.sort(key=_difficulty)
    return Plan(tuple(asks), request.needs.cpu_milli, default)


def _asks_of(ask: Ask) -> Iterator[Ask]:
    wanted = ask.request
    if not wanted.repeats_cards or wanted.count == 1:
        yield ask
    elif ask.role == "init":
        raise Refused(f"{REPEAT_CARDS}: init container {ask.container} cannot have several grants on one card")
    elif wanted.movable:
        who = grantee_in_words(ask.container)
        raise Refused(
            f"{REPEAT_CARDS}: {who} has memory that moves ({MOVABLE}), which can't be several grants on one card"
        )
    elif wanted.bundles:
        who = grantee_in_words(ask.container)
        raise Refused(f"{REPEAT_CARDS}: {who} asks for cards close to each other, not for one")
    else:
        one = ask._replace(request=replace(wanted, count=1))
        yield from (one for _ in range(wanted.count))


def _difficulty(ask: Ask) -> tuple[int, int, int, int]:
    wanted = ask.request
    return _ORDER[ask.role], -wanted.count, -wanted.share_milli, -(wanted.memory_bytes or 0)


NAMESPACES: Final = "PARTAGE_GPU_EXCLUSION_NAMESPACES"
EVERY_NAMESPACE: Final = Namespace("*")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?|\*", re.ASCII)


def read_namespaces(text: str) -> frozenset[Namespace]:
    """Parses names of namespaces, separated by commas; `*` means all. The `Refused` names an invalid one."""
    names = [each.strip() for each in text.split(",")] if text.strip() else []
    for name in names:
        if _NAMESPACE.fullmatch(name) is None:
            raise Refused(f"{name!r} is no namespace; allowed: names of namespaces separated by commas, or *")
    return frozenset(map(Namespace, names))


def excluding_part(asks: Iterable[Ask]) -> Ask | None:
    """The first ask, if any, for a part of each card that would keep others off the whole card."""
    found = (ask for ask in asks if ask.request.tags.exclusion is not None and ask.request.share_milli < WHOLE_MILLI)
    return next(found, None)


def require_trusted(namespace: Namespace, ask: Ask, trusted: frozenset[Namespace]) -> None:
    """Refuses a pod that keeps others off more than it requests, unless its namespace may do so."""
    if trusted.isdisjoint((namespace, EVERY_NAMESPACE)):
        who = grantee_in_words(ask.container)
        raise Refused(
            f"exclusion: {who} asks for {ask.request.share_milli} milli of a card and "
            f"would keep others off all of it; ask for {WHOLE_MILLI} milli of each card, or have the operator name "
            f"namespace {namespace} in {NAMESPACES}"
        )
