"""Settings of discovery: environment variables of the advertiser, read once at its start. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from partage_gpu.discovery.health import LONGEST_QUIET_S, Rules
from partage_plugins.api.gpu import MIB
from partage_plugins.codecs.quantity import parse_whole_quantity
from partage_plugins.errors import DecodeError

POOL: Final = "PARTAGE_GPU_POOL"
DRA: Final = "PARTAGE_GPU_DRA"
RESERVE: Final = "PARTAGE_GPU_RESERVE_MIB"
QUIET: Final = "PARTAGE_GPU_QUIET_S"
HARMLESS: Final = "PARTAGE_GPU_HARMLESS_XIDS"
SHARE_BLIND: Final = "PARTAGE_GPU_SHARE_BLIND"
MEMORY_BEYOND: Final = "PARTAGE_GPU_MEMORY_BEYOND"

_ID: Final = re.compile(r"(GPU|MIG)-[0-9A-Za-z-]{1,120}", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,4}", re.ASCII)
_PERCENT: Final = re.compile(r"([0-9]{1,4})%", re.ASCII)
_MOST_RESERVE_MIB: Final = 1 << 20
_LIST_IN_WORDS: Final = "all, none, or a list of GPU numbers, ids (GPU-… or their beginnings) and model=pattern"
_MOST_BEYOND_BYTES: Final = 1 << 50
_MOST_PERCENT: Final = 1000
_BEYOND_IN_WORDS: Final = (
    f"an amount (40Gi, or 50% of the card's memory; at most {_MOST_BEYOND_BYTES >> 40}Ti and {_MOST_PERCENT}%), or a "
    "list of CARD:AMOUNT, where CARD is a GPU's number, an id (GPU-… or its beginning) or model=pattern"
)
_IN_WORDS: Final = {POOL: f"auto, {_LIST_IN_WORDS}", DRA: _LIST_IN_WORDS}

By = Literal["number", "id", "model"]


@dataclass(frozen=True)
class Choice:
    """One entry of a list of cards."""

    by: By
    value: str

    def __str__(self) -> str:
        return f"model={self.value}" if self.by == "model" else self.value


@dataclass(frozen=True)
class PoolSetting:
    """Which cards are in a pool."""

    mode: Literal["auto", "all", "none", "listed"]
    listed: tuple[Choice, ...] = ()


@dataclass(frozen=True)
class Beyond:
    """How much more than their memory may be promised of some cards: bytes, or percent of their memory."""

    choice: Choice | None
    """None: all cards."""
    size_bytes: int = 0
    percent: int = 0

    def of(self, memory_bytes: int) -> int:
        """Bytes, for a card with that much memory; percent rounded down to 1 MiB."""
        return min(self.size_bytes + memory_bytes * self.percent // 100 // MIB * MIB, _MOST_BEYOND_BYTES)


@dataclass(frozen=True, kw_only=True)
class DiscoverySettings:
    shared: PoolSetting = PoolSetting("auto")
    dra: PoolSetting = PoolSetting("none")
    """Cards for DRA, taken from those in `shared`."""
    reserve_bytes: int = 0
    """Memory of each card, and of each MIG instance, that containers do not get."""
    memory_beyond: tuple[Beyond, ...] = (Beyond(None),)
    """The last entry that matches a card applies to it; without one, nothing is promised beyond its memory."""
    share_blind: bool = False
    """Whether to share cards for which NVML does not report the memory of processes."""
    rules: Rules = field(default_factory=Rules)


def discovery_settings(environment: Mapping[str, str]) -> DiscoverySettings:
    """Reads the settings; raises one `ValueError` with all mistakes."""
    mistakes: list[str] = []
    settings = DiscoverySettings(
        shared=_pool(POOL, environment.get(POOL, "auto"), mistakes),
        dra=_pool(DRA, environment.get(DRA, "none"), mistakes),
        reserve_bytes=_reserve(environment.get(RESERVE, "0"), mistakes),
        memory_beyond=tuple(_beyond(environment.get(MEMORY_BEYOND, "0"), mistakes)),
        share_blind=_is_yes(environment.get(SHARE_BLIND, "no"), mistakes),
        rules=Rules(
            quiet_s=_quiet(environment.get(QUIET, "60"), mistakes),
            harmless=_harmless(environment.get(HARMLESS, ""), mistakes),
        ),
    )
    if mistakes:
        raise ValueError("; ".join(mistakes))
    return settings


def _pool(variable: str, text: str, mistakes: list[str]) -> PoolSetting:
    match text:
        case "all" | "none":
            return PoolSetting(text)
        case "auto" if variable == POOL:
            return PoolSetting(text)
        case _:
            return PoolSetting("listed", tuple(_choices(variable, text, mistakes)))


def _choices(variable: str, text: str, mistakes: list[str]) -> Iterator[Choice]:
    for entry in _entries(text) or [text]:
        choice = _choice(entry)
        if choice is None:
            mistakes.append(f"{variable} has {entry!r:.80}; allowed: {_IN_WORDS[variable]}")
        else:
            yield choice


def _choice(entry: str) -> Choice | None:
    if _NUMBER.fullmatch(entry):
        return Choice("number", str(int(entry)))
    if _ID.fullmatch(entry):
        return Choice("id", entry)
    key, _, pattern = entry.partition("=")
    return Choice("model", pattern.strip()) if key.strip() == "model" and pattern.strip() else None


def _reserve(text: str, mistakes: list[str]) -> int:
    if re.fullmatch("[0-9]{1,7}", text, re.ASCII) and int(text) <= _MOST_RESERVE_MIB:
        return int(text) * MIB
    mistakes.append(f"{RESERVE} is {text!r:.80}; allowed: a whole number of MiB up to {_MOST_RESERVE_MIB}")
    return 0


def _beyond(text: str, mistakes: list[str]) -> Iterator[Beyond]:
    for entry in _entries(text) or [text]:
        chosen, colon, amount = entry.rpartition(":")
        choice = _choice(chosen.strip()) if colon else None
        found = _amount_beyond(choice, amount.strip())
        if found is None or (colon and choice is None):
            mistakes.append(f"{MEMORY_BEYOND} has {entry!r:.80}; allowed: {_BEYOND_IN_WORDS}")
        else:
            yield found


def _amount_beyond(choice: Choice | None, text: str) -> Beyond | None:
    """None if it is no valid amount, or too much."""
    if (percent := _PERCENT.fullmatch(text)) is not None:
        return Beyond(choice, percent=int(percent[1])) if int(percent[1]) <= _MOST_PERCENT else None
    try:
        return Beyond(choice, size_bytes=parse_whole_quantity(text, largest=_MOST_BEYOND_BYTES))
    except DecodeError:
        return None


def _is_yes(text: str, mistakes: list[str]) -> bool:
    if text not in ("yes", "no"):
        mistakes.append(f"{SHARE_BLIND} is {text!r:.80}; allowed: yes, no")
    return text == "yes"


def _quiet(text: str, mistakes: list[str]) -> float:
    try:
        quiet_s = float(text)
    except ValueError:
        quiet_s = math.nan
    if 0 <= quiet_s <= LONGEST_QUIET_S:
        return quiet_s
    mistakes.append(f"{QUIET} is {text!r:.80}; allowed: seconds from 0 to {LONGEST_QUIET_S:g}")
    return 0.0


def _harmless(text: str, mistakes: list[str]) -> frozenset[int]:
    wrong = [entry for entry in _entries(text) if not _NUMBER.fullmatch(entry)]
    mistakes += [f"{HARMLESS} has {entry!r:.80}; allowed: a list of XIDs such as 94,63" for entry in wrong]
    return frozenset(int(entry) for entry in _entries(text) if entry not in wrong)


def _entries(text: str) -> list[str]:
    return [entry.strip() for entry in text.split(",") if entry.strip()]
