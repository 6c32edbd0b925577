"""The common part of the vGPU dialects of Volcano and of HAMi: HAMi-core's amounts, and annotations about cards.

Cores are percent of a card's time, and a cap: 30 are a share and a limit of 300 milli. No cores mean no cap: the time
that others leave, on a card that is not full. 100 cores need an empty card, which stays exclusive. Memory is in MiB or
in percent of each card; each dialect has its own rule for which one counts if both are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from partage_dialects.amounts import refused
from partage_plugins.api.gpu import MIB, NO_TAGS, GpuGrant, GpuRequest, Tags
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES, WHOLE_MILLI
from partage_plugins.api.names import CARD_ID_PATTERN, IN_WORDS, CardId
from partage_plugins.api.pods import PodContainer
from partage_plugins.codecs.quantity import parse_whole_quantity

FULL: Final = 100
_MILLI: Final = WHOLE_MILLI // FULL
_ALONE: Final = "vgpu-cores-100"
_MOST_ITEMS: Final = 256
_MOST_MIB: Final = 2**42
_PART: Final = re.compile(r"[^\x00-\x1f\x7f\ud800-\udfff]{1,128}")
_VENDOR: Final = "NVIDIA-"
"""Prefix that both systems add to a model's name before comparing it."""
_MODES: Final[Mapping[str, bool]] = {"hami-core": False, "mig": True}
_NUMBER: Final = re.compile(r"[0-9]{1,9}", re.ASCII)

USE_TYPE: Final = "nvidia.com/use-gputype"
NO_TYPE: Final = "nvidia.com/nouse-gputype"
_ANY: Final = GpuRequest()


@dataclass(frozen=True)
class VgpuSettings:
    """The cluster's own configuration of these systems, as variables of the scheduler's environment."""

    default_memory_mib: int = 0
    """For pods that give none; 0: all of a card's memory."""
    default_cores: int = 0
    default_number: int = 1
    memory_factor: int = 1
    """MiB for each unit of memory in a pod."""


def settings_from(environment: Mapping[str, str], prefix: str) -> VgpuSettings:
    """Reads the settings of one dialect; raises a `ValueError` that names an invalid one."""

    def number(name: str, default: int, *, lowest: int = 0, highest: int = _MOST_MIB) -> int:
        text = environment.get(prefix + name, str(default))
        if _NUMBER.fullmatch(text) is None or not lowest <= int(text) <= highest:
            raise ValueError(f"{prefix}{name} is {text!r:.80}; allowed: a whole number from {lowest} to {highest}")
        return int(text)

    return VgpuSettings(
        default_memory_mib=number("DEFAULT_MEMORY", 0),
        default_cores=number("DEFAULT_CORES", 0, highest=FULL),
        default_number=number("DEFAULT_GPUS", 1, lowest=1, highest=FULL),
        memory_factor=number("MEMORY_FACTOR", 1, lowest=1, highest=1 << 20),
    )


class Amounts(NamedTuple):
    """One container's amounts, for each card."""

    number: int
    memory_mib: int | None
    percentage: int | None
    """Of the card's memory; one of the two is set."""
    cores: int


def amount(container: PodContainer, key: str, *, largest: int = _MOST_MIB) -> int | None:
    """A resource from limits, else from requests; None if neither has it."""
    for where, said in (("limits", container.limits), ("requests", container.requests)):
        text = said.get(key)
        if text is not None:
            return parse_whole_quantity(text, path=f"containers.{container.name}.{where}[{key}]", largest=largest)
    return None


def request_of(amounts: Amounts, wishes: GpuRequest) -> GpuRequest:
    """A container's request, with its pod's constraints on cards."""
    milli, percentage = amounts.cores * _MILLI, amounts.percentage
    if wishes.instances:
        milli = WHOLE_MILLI  # an instance belongs to one container, regardless of cores
    is_whole = milli == WHOLE_MILLI
    keeps_off = is_whole and percentage != FULL  # otherwise there is no memory left for others anyway
    return replace(
        wishes,
        count=amounts.number,
        share_milli=milli,
        limit_milli=milli or WHOLE_MILLI,
        memory_bytes=None if amounts.memory_mib is None else amounts.memory_mib * MIB,
        memory_milli=None if percentage is None else percentage * _MILLI,
        tags=replace(wishes.tags, exclusion=_ALONE) if keeps_off else wishes.tags,
        idle_cards=wishes.idle_cards or is_whole,
        spare_share=not milli,
    )


class CardKeys(NamedTuple):
    """The annotations with which a dialect's pods choose cards."""

    use_id: str
    no_id: str
    mode: str
    use_beats_no: bool
    """Whether excluded models are ignored if there are also required ones."""


def wishes_of(said: Mapping[str, str], keys: CardKeys, *, tags: Tags = NO_TAGS) -> GpuRequest:
    """A pod's constraints on cards; the amounts in it are not used."""
    if tags is NO_TAGS and said.keys().isdisjoint((USE_TYPE, NO_TYPE, keys.use_id, keys.no_id, keys.mode)):
        return _ANY
    parts = _parts(said, USE_TYPE)
    overruled = keys.use_beats_no and USE_TYPE in said
    return GpuRequest(
        model_parts=() if "" in parts else parts,  # as there: every name contains the empty text
        model_parts_not=() if overruled else _named(said, NO_TYPE),
        cards=_ids(said, keys.use_id),
        cards_not=_ids(said, keys.no_id),
        instances=_mode(said, keys.mode),
        tags=tags,
    )


def _mode(said: Mapping[str, str], key: str) -> bool | None:
    mode = said.get(key)
    if mode is None:
        return None
    if mode not in _MODES:
        raise refused(key, mode, " or ".join(_MODES))
    return _MODES[mode]


def _named(said: Mapping[str, str], key: str) -> tuple[str, ...]:
    parts = _parts(said, key)
    if "" in parts:
        raise refused(key, said[key], "parts of models' names, separated by commas")
    return parts


def _parts(said: Mapping[str, str], key: str) -> tuple[str, ...]:
    items = _items(said, key)
    for item in filter(None, items):
        if _PART.fullmatch(item) is None:
            raise refused(key, said[key], "parts of models' names: 1 to 128 printable characters each")
    return tuple(item[len(_VENDOR) :] if item.upper().startswith(_VENDOR) else item for item in items)


def _ids(said: Mapping[str, str], key: str) -> tuple[CardId, ...]:
    items = _items(said, key)
    for item in items:
        if re.search(CARD_ID_PATTERN, item) is None:
            raise refused(key, said[key], f"GPUs' UUIDs, separated by commas; each is {IN_WORDS[CARD_ID_PATTERN]}")
    return tuple(map(CardId, items))


def _items(said: Mapping[str, str], key: str) -> list[str]:
    text = said.get(key)
    if text is None:
        return []
    if len(text) > MAX_ANNOTATION_BYTES or text.count(",") >= _MOST_ITEMS:
        raise refused(key, f"{text:.40}…", f"at most {_MOST_ITEMS} items")
    return [item.strip() for item in text.split(",")]


def encoded(grants: Iterable[GpuGrant]) -> str:
    """One container's cards in the notation of both systems: id, vendor, MiB, cores."""
    return "".join(f"{each.card},NVIDIA,{each.memory_bytes // MIB},{each.share_milli // _MILLI}:" for each in grants)
