"""Parses the request of a Docker or Podman container into a request of the native dialect. Pure.

Annotations take precedence over Swarm's reservations, and those over variables: a user's variable cannot be
distinguished from one of the image. An empty value counts as unset, so that `-e PARTAGE_SHARE=` cancels the image's
value. Amounts are parsed by the native dialect; only memory in docker's units is converted to bytes here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from fractions import Fraction
from typing import Final, NamedTuple

from msgspec import Struct

from partage_plugins.api import ContainerName, Namespace, Pod, PodContainer, PodName, PodRef, PodUid
from partage_plugins.api.keys import (
    BUDGET,
    GANGS,
    GPU_MEMORY,
    GPU_MILLI,
    GPU_RESOURCES,
    GPUS,
    LIMIT_MILLI,
    POLICIES,
    PREFIX,
    RESIZE,
    RESIZES,
)
from partage_plugins.api.limits import MAX_CARDS, WHOLE_MILLI
from partage_plugins.errors import DecodeError, PartageError, Refused

NAMESPACE: Final = Namespace("containers")
"""The namespace that engine containers are shown under beside pods, and that their tags belong to."""
CONTAINER: Final = ContainerName("main")
SHOWN: Final = 12
"""Characters of an id to show, as docker does."""
SHARE: Final = "PARTAGE_SHARE"
LIMIT: Final = "PARTAGE_LIMIT"
MEMORY: Final = "PARTAGE_MEMORY"
CARDS: Final = "PARTAGE_CARDS"
_VARIABLES: Final[Mapping[str, str]] = {SHARE: GPU_MILLI, LIMIT: LIMIT_MILLI, MEMORY: GPU_MEMORY, CARDS: GPUS}
_OURS: Final = "PARTAGE_"
_RESERVED: Final = "DOCKER_RESOURCE_PARTAGE-"
_SWARM_SHARE: Final = "DOCKER_RESOURCE_PARTAGE-MILLI"
_SWARM_MEMORY: Final = "DOCKER_RESOURCE_PARTAGE-MEMORY-MIB"
_SWARM: Final[Mapping[str, str]] = {_SWARM_SHARE: GPU_MILLI, _SWARM_MEMORY: GPU_MEMORY}
_NVIDIA_MEMORY: Final = "NVIDIA_GPU_MEMORY_LIMIT"
"""A variable of NVIDIA's toolkit, in MiB; it requests nothing by itself."""
_OF_PODS: Final = GANGS | {BUDGET}
_KEYS: Final = (GPU_RESOURCES | POLICIES) - GANGS - {BUDGET}
_AMOUNT: Final = re.compile(r"(?P<number>[0-9]{1,18}(\.[0-9]{1,9})?)(?P<unit>([kmgt]i?)?b?)", re.ASCII | re.IGNORECASE)
_WHOLE: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
_POWERS: Final = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_MIB: Final = 1 << 20
_ALIKE: Final = 0.6
_LONGEST_WORD: Final = 64
_NATIVE_WORD: Final = re.compile(r"partage\.dev/[a-z-]+")


class Said(NamedTuple):
    """A variable or annotation as typed, and its value."""

    word: str
    text: str


class Asked(Struct, frozen=True):
    """A request by keys of the native dialect, and the names it was typed with."""

    amounts: Mapping[str, str]
    policies: Mapping[str, str]
    said: Mapping[str, Said]

    def pod(self, id_: str, *, memory_bytes: int | None) -> Pod:
        """The container as a pod of its own; `memory_bytes` is its limit of main memory."""
        limits = self.amounts if memory_bytes is None else {**self.amounts, "memory": str(memory_bytes)}
        return Pod(
            ref=PodRef(namespace=NAMESPACE, name=PodName(id_[:SHOWN]), uid=PodUid(id_)),
            annotations=self.policies,
            containers=(PodContainer(name=CONTAINER, limits=limits),),
        )

    def refusal(self, error: PartageError) -> str:
        """The refusal of that pod, with the names as typed."""
        if isinstance(error, DecodeError):
            for key, said in self.said.items():
                if error.path == key or f"[{key}]" in error.path:
                    return self._typed(str(_refused(said, error.allowed)))
        return self._typed(str(error).removeprefix("request: "))

    def in_vain(self) -> Refused:
        """The refusal of a request whose amounts are all zero."""
        words = ", ".join(sorted({f"{said.word}={said.text}" for said in self.said.values()}))
        return Refused(f"{words:.200} asks for no part of a card; say more than 0, or leave it out")

    def _typed(self, text: str) -> str:
        return _NATIVE_WORD.sub(lambda match: self._word(match[0]), text)

    def _word(self, key: str) -> str:
        by_variables = not any(said.word.startswith(PREFIX) for said in self.said.values())
        words = {native: word for word, native in _VARIABLES.items()} if by_variables else {}
        return self.said[key].word if key in self.said else words.get(key, key)


def asked_of(env: Iterable[str], annotations: Mapping[str, str]) -> Asked | None:
    """The request, or None if there is none; raises `Refused`."""
    said = dict[str, Said]()
    variables = dict(_variables(env))
    for words in (_VARIABLES, _SWARM):
        said |= {key: Said(word, variables[word]) for word, key in words.items() if variables.get(word)}
    native = {key: text for key, text in annotations.items() if key.startswith(PREFIX)}
    if not RESIZES.isdisjoint(native):
        raise Refused(f"{RESIZE}: a container of an engine is not resized while it runs; start it with other amounts")
    _require_known(native)
    said |= {key: Said(key, text) for key, text in native.items() if text}
    if not said:
        return None
    if GPU_MEMORY not in said and variables.get(_NVIDIA_MEMORY):
        said[GPU_MEMORY] = Said(_NVIDIA_MEMORY, variables[_NVIDIA_MEMORY])
    if not said.keys() & GPU_RESOURCES:
        word = next(iter(said.values())).word
        raise Refused(f"{word} asks for no card by itself; say {SHARE}, {MEMORY} or {CARDS} too")
    amounts = {key: _text_of(each) for key, each in said.items() if key in GPU_RESOURCES}
    return Asked(_with_whole_cards(amounts, said), {key: said[key].text for key in said.keys() & POLICIES}, said)


def _variables(env: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Variables that may concern cards; of duplicates the last one counts, as in a container."""
    for each in env:
        name, _, text = each.partition("=")
        if name.startswith(_OURS) and name not in _VARIABLES and text:
            raise _unknown(name, _OURS, _VARIABLES)
        if name.startswith(_RESERVED) and name not in _SWARM and text:
            raise _unknown(name, _RESERVED, _SWARM)
        if name in _VARIABLES or name in _SWARM or name == _NVIDIA_MEMORY:
            yield name, text


def _require_known(native: Iterable[str]) -> None:
    for key in native:
        if key in _OF_PODS:
            raise Refused(f"{key} is for pods of several containers; a container of an engine has its grant alone")
        if key not in _KEYS:
            raise _unknown(key, PREFIX, _KEYS)


def _with_whole_cards(amounts: dict[str, str], said: dict[str, Said]) -> dict[str, str]:
    """A number of cards without a part means whole cards."""
    cards = said.get(GPUS)
    if cards is None or cards.word != CARDS or amounts.keys() != {GPUS}:
        return amounts
    if _WHOLE.fullmatch(cards.text) is None or not 1 <= int(cards.text) <= MAX_CARDS:
        raise _refused(cards, f"a whole number from 1 to {MAX_CARDS}")
    said[GPU_MILLI] = cards
    return {**amounts, GPU_MILLI: str(int(cards.text) * WHOLE_MILLI)}


def _text_of(said: Said) -> str:
    """The value in the form that the native dialect parses."""
    match said.word:
        case "PARTAGE_MEMORY":
            return str(_bytes_of(said))
        case "DOCKER_RESOURCE_PARTAGE-MEMORY-MIB" | "NVIDIA_GPU_MEMORY_LIMIT":
            if _WHOLE.fullmatch(said.text) is None:
                raise _refused(said, "a whole number of MiB, such as 8192")
            return str(int(said.text) * _MIB)
        case _:
            return said.text


def _bytes_of(said: Said) -> int:
    """Docker's units and Kubernetes' binary ones are equal here: 512m, 4g, 512Mi and 4Gi are binary."""
    match = _AMOUNT.fullmatch(said.text)
    number = Fraction(match["number"]) * (1 << _POWERS[match["unit"][:1].lower()]) if match else Fraction(1, 2)
    if number.denominator != 1 or number <= 0:
        raise _refused(said, "an amount of memory such as 512m, 4g, 512Mi or 4Gi (1k is 1024 bytes)")
    return number.numerator


def _refused(said: Said, allowed: str) -> Refused:
    """A short, printable refusal for any input."""
    error = DecodeError("word", path=said.word, value=repr(said.text), allowed=allowed)
    return Refused(f"{error.path} is {error.value}; allowed: {error.allowed}")


def _unknown(word: str, prefix: str, known: Iterable[str]) -> Refused:
    names, name = sorted(each.removeprefix(prefix) for each in known), word.removeprefix(prefix)
    near = get_close_matches(name, names, n=1, cutoff=_ALIKE) if len(name) <= _LONGEST_WORD else []
    meant = f"did you mean {prefix}{near[0]}?" if near else f"allowed: {prefix} with {', '.join(names)}"
    shown = DecodeError("word", path=word, value="", allowed="").path
    return Refused(f"{shown} is no word that partage knows; {meant}")
