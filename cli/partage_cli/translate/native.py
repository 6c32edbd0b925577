"""Writes a pod's request in the native dialect. Pure.

The translation is verified, not assumed: the result is read again and compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from msgspec.structs import replace

from partage_plugins.api import GPU, BudgetName, ContainerName, Gang, GpuRequest, PodRequest, grantee_of, keys
from partage_plugins.api.gpu import LEVELS
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.codecs.quantity import format_bytes
from partage_plugins.errors import Refused


def level_of(ask: GpuRequest) -> str | None:
    """The topology level that all cards share, or None: the native dialect supports one level for all cards or none."""
    levels = [bundle.level for bundle in ask.bundles if bundle.count == ask.count and not bundle.parts]
    return levels[0] if len(levels) == 1 and levels[0] in LEVELS else None


_VALUES: Final[Mapping[str, Callable[[GpuRequest], str | None]]] = {
    keys.LIMIT_MILLI: lambda ask: str(ask.limit_milli * ask.count) if ask.limit_milli < WHOLE_MILLI else None,
    keys.AFFINITY: lambda ask: ask.tags.affinity,
    keys.ANTI_AFFINITY: lambda ask: ask.tags.anti_affinity,
    keys.EXCLUSION: lambda ask: ask.tags.exclusion,
    keys.MODELS: lambda ask: ",".join(ask.models) or None,
    keys.MODELS_NOT: lambda ask: ",".join(ask.models_not) or None,
    keys.CARDS: lambda ask: ",".join(ask.cards) or None,
    keys.CARDS_NOT: lambda ask: ",".join(ask.cards_not) or None,
    keys.POLICY: lambda ask: ask.policy,
    keys.TOPOLOGY: level_of,
    keys.REPEAT_CARDS: lambda ask: "yes" if ask.repeats_cards else None,
    keys.MOVABLE: lambda ask: "yes" if ask.movable else None,
}


class Words(NamedTuple):
    """The native annotations and limits that replace another dialect's keys."""

    annotations: Mapping[str, str]
    limits: Mapping[ContainerName, Mapping[str, str]]


def words_for(request: PodRequest, gang: Gang | None) -> Words:
    """Raises `Refused` for a plugin's kind that the native dialect can't express."""
    asks = dict(_asks(request))
    annotations = {
        key: text for key, value in _VALUES.items() if (text := _said({n: value(a) for n, a in asks.items()}))
    }
    budgets = {use.container: str(use.budget) for use in request.uses}
    if budgets:
        annotations[keys.BUDGET] = _said({name: budgets.get(name) for name in asks}) or ""
    if gang is not None:
        annotations |= {keys.GANG: gang.name, keys.GANG_SIZE: str(gang.size)}
    return Words(annotations, {name: _limits(ask) for name, ask in asks.items()})


def unsaid(wanted: PodRequest, written: PodRequest) -> str | None:
    """The first difference of `written` from `wanted`, for people; None if both have the same effect."""
    ours = dict(_asks(written))
    for name, ask in _asks(wanted):
        one, other = _in_effect(ask), _in_effect(ours.get(name, GpuRequest()))
        for field in one.__struct_fields__:
            if getattr(one, field) != getattr(other, field):
                return f"{field} {getattr(one, field)!r}, which {name} asks for"
    return None if wanted.uses == written.uses and wanted.asking == written.asking else "what its containers share"


def beyond_amounts(ask: GpuRequest) -> str | None:
    """The first part of the request other than card counts, milli and bytes, for people; None if there is none."""
    one = _in_effect(ask)
    plain = _in_effect(
        GpuRequest(
            count=ask.count, share_milli=ask.share_milli, limit_milli=ask.limit_milli, memory_bytes=ask.memory_bytes
        )
    )
    differs = (each for each in one.__struct_fields__ if getattr(one, each) != getattr(plain, each))
    return next((f"{each} {getattr(one, each)!r}" for each in differs), None)


def left_out(wanted: PodRequest) -> Iterator[str]:
    """Notes on a harmless loss: a pod is no longer kept off cards whose share is allocated to the last milli."""
    for name, ask in _asks(wanted):
        if ask.spare_share and not ask.share_milli:
            yield f"container {name} may now also come onto a card of which no share is left"


def _in_effect(ask: GpuRequest) -> GpuRequest:
    """The request without fields that follow from others, or that `left_out` covers."""
    follows = ask.memory_bytes is not None or ask.memory_milli == ask.share_milli
    return replace(ask, spare_share=False, memory_milli=None if follows else ask.memory_milli)


def _asks(request: PodRequest) -> Iterator[tuple[ContainerName, GpuRequest]]:
    others = sorted(request.kinds - {GPU.name})
    if others:
        raise Refused(f"this pod asks for {', '.join(others)}, which partage.dev/ has no words for")
    granted = request.of(GPU)
    for container in sorted(request.asking):
        budgets = [use.budget for use in request.uses if use.container == container]
        yield container, granted[grantee_of(BudgetName(budgets[0])) if budgets else container]


def _said(by_container: Mapping[ContainerName, str | None]) -> str | None:
    """One value if it is the same for all containers, or else one for each container's name."""
    values = set(by_container.values())
    if len(values) == 1:
        return values.pop()
    return "; ".join(f"{name}: {value}" for name, value in by_container.items() if value is not None)


def _limits(ask: GpuRequest) -> dict[str, str]:
    said: dict[str, Any] = {
        keys.GPU_MILLI: str(ask.share_milli * ask.count) if ask.share_milli else "",
        keys.GPU_MEMORY: format_bytes(ask.memory_bytes * ask.count) if ask.memory_bytes else "",
        keys.GPUS: str(ask.count) if ask.count > 1 and ask.share_milli != WHOLE_MILLI else "",
    }
    return {key: text for key, text in said.items() if text}
