"""Writes a pod's request as claims of our DRA driver. Pure.

Each container with a request has its own claim; containers of one budget share one. Requests that kube-scheduler can't
honour are rejected: packing, tags and gangs need our scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from partage_cli.translate.native import level_of
from partage_plugins.api import GPU, Gang, GpuRequest, PodRequest, budget_of
from partage_plugins.api.claims import DRIVER
from partage_plugins.api.gpu import MIB, NO_TAGS, NUMA, NVLINK, PCIE
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import ContainerName
from partage_plugins.codecs.quantity import format_bytes
from partage_plugins.errors import Refused

Document = dict[str, Any]
CLASS: Final = f"shared.{DRIVER}"
_OURS: Final = f'device.attributes["{DRIVER}"]'
_GROUPS: Final = {NVLINK: "nvlinkGroup", PCIE: "pcieGroup", NUMA: "numaNode"}


class PodClaim(NamedTuple):
    """One claim of a pod: its name in the pod, the containers that use it, and its template's spec."""

    name: str
    containers: tuple[ContainerName, ...]
    spec: Document


def claims_of(request: PodRequest, gang: Gang | None) -> tuple[PodClaim, ...]:
    """Raises `Refused` if claims can't express something that matters."""
    if gang is not None:
        raise _wordless("a gang, whose pods start together")
    if others := sorted(request.kinds - {GPU.name}):
        raise _wordless(", ".join(others))
    users = {use.budget: [each.container for each in request.uses if each.budget == use.budget] for use in request.uses}
    return tuple(
        PodClaim(str(budget), tuple(users[budget]), _spec(ask))
        if (budget := budget_of(grantee)) is not None
        else PodClaim(str(grantee), (grantee,), _spec(ask))
        for grantee, ask in sorted(request.of(GPU).items())
    )


def left_out(request: PodRequest) -> Iterator[str]:
    """Notes on differences that people may see, and that change no limit."""
    for name, ask in request.of(GPU).items():
        if ask.spare_share and not ask.share_milli:
            yield f"{name} may now also come onto a card of which no share is left"
        if ask.policy is not None:
            yield f"{name} is placed in kube-scheduler's order, not by the policy {ask.policy}"


def _spec(ask: GpuRequest) -> Document:
    exactly: Document = {"deviceClassName": CLASS}
    if amounts := dict(_amounts(ask)):
        exactly["capacity"] = {"requests": amounts}
    if choices := list(_choices(ask)):
        exactly["selectors"] = [{"cel": {"expression": choice}} for choice in choices]
    if ask.repeats_cards:
        requests = [{"name": f"gpu-{number}", "exactly": exactly} for number in range(ask.count)]
    else:
        requests = [{"name": "gpu", "exactly": {**exactly, **({"count": ask.count} if ask.count > 1 else {})}}]
    devices: Document = {"requests": requests}
    if (level := _level(ask)) is not None:
        devices["constraints"] = [{"matchAttribute": f"{DRIVER}/{_GROUPS[level]}"}]
    if ask.limit_milli < WHOLE_MILLI:
        parameters = {"apiVersion": "partage.dev/v1", "kind": "ShareConfig", "limitMilli": ask.limit_milli}
        devices["config"] = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    _require_words(ask)
    return {"devices": devices}


def _amounts(ask: GpuRequest) -> Iterator[tuple[str, str]]:
    """The amounts for each card; an omitted amount means the whole card."""
    if ask.share_milli != WHOLE_MILLI:
        yield "share", str(ask.share_milli)
    if ask.memory_bytes is not None:
        yield "memory", format_bytes(-(-ask.memory_bytes // MIB) * MIB)
        return
    part = ask.share_milli if ask.memory_milli is None else ask.memory_milli
    if part != WHOLE_MILLI:
        raise _wordless(f"{part} thousandths of whatever memory a card has; say how many bytes")


def _choices(ask: GpuRequest) -> Iterator[str]:
    """CEL expressions, all of which a card must satisfy."""
    model = f"{_OURS}.model"
    if ask.models:
        yield _named(model, ask.models)
    if ask.models_not:
        yield f"!({_named(model, ask.models_not)})"
    if ask.model_parts:
        yield _has_part(model, ask.model_parts)
    if ask.model_parts_not:
        yield f"!({_has_part(model, ask.model_parts_not)})"
    if ask.instances is not None:
        yield f'{"" if ask.instances else "!"}("mig" in {_OURS})'
    if ask.least_card_bytes:
        least = format_bytes(ask.least_card_bytes)
        yield f'device.capacity["{DRIVER}"].memory.compareTo(quantity("{least}")) >= 0'
    if ask.cards:
        yield _among(ask.cards)
    if ask.cards_not:
        yield f"!({_among(ask.cards_not)})"


def _named(model: str, names: tuple[str, ...]) -> str:
    """Models may be written with hyphens instead of spaces."""
    said = _list(names)
    return f'{model} in {said} || {model}.replace(" ", "-") in {said}'


def _has_part(model: str, parts: tuple[str, ...]) -> str:
    return f"{_list(tuple(part.upper() for part in parts))}.exists(part, {model}.upperAscii().contains(part))"


def _among(ids: tuple[str, ...]) -> str:
    """A GPU's id also selects the MIG instances on it."""
    said = _list(ids)
    return f'{_OURS}.uuid in {said} || ("parent" in {_OURS} && {_OURS}.parent in {said})'


def _list(texts: tuple[str, ...]) -> str:
    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    return f"[{', '.join(map(quoted, texts))}]"


def _level(ask: GpuRequest) -> str | None:
    level = level_of(ask)
    if ask.bundles and level is None:
        raise _wordless("cards that are close in groups, or as close as there are")
    return level


def _require_words(ask: GpuRequest) -> None:
    for has, what in (
        (ask.tags != NO_TAGS, "affinity, anti-affinity and exclusion"),
        (ask.idle_cards, "cards that hold nothing"),
        (ask.movable, "memory that moves off the card"),
        (ask.memory_bytes == 0, "no memory at all"),
    ):
        if has:
            raise _wordless(what)


def _wordless(what: str) -> Refused:
    return Refused(f"claims have no words for {what}; leave the pod to partage-scheduler")
