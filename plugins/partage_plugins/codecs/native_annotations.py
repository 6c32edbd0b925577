"""Policies of the native dialect: annotations for a whole pod, or for containers by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final

from msgspec import Struct

from partage_plugins.api import keys
from partage_plugins.api.gpu import LEVELS, GpuRequest, Tags
from partage_plugins.api.limits import MAX_ANNOTATION_BYTES, MAX_CARDS, WHOLE_MILLI
from partage_plugins.api.names import (
    CARD_ID_PATTERN,
    CONTAINER_NAME_PATTERN,
    IN_WORDS,
    TAG_PATTERN,
    BudgetName,
    ContainerName,
)
from partage_plugins.codecs.quantity import parse_whole_quantity
from partage_plugins.errors import DecodeError

_MODEL: Final = r"\A[^\x00-\x1f\x7f,;\ud800-\udfff]{1,128}\Z"
_POLICY: Final = r"\A[A-Za-z0-9][A-Za-z0-9._+=, -]{0,159}\Z"
_WORDS: Final = (
    IN_WORDS
    | {_MODEL: "a model, as NVML names it: 1 to 128 printable characters"}
    | {_POLICY: "a policy, such as fgd+ or binpack, or several with weights, fgd+=2,topology=1"}
)
_KNOWN: Final = keys.POLICIES | keys.GANGS | keys.RESIZES | {keys.SUSPEND}
_MAX_ITEMS: Final = 256
_ALIKE: Final = 0.8
_LONGEST_KEY: Final = 64
"""Limit for spelling suggestions; longer keys are not compared."""
_ANSWERS: Final = {"yes": True, "no": False}


class Policies(Struct, frozen=True, kw_only=True):
    """One container's policies, from the pod's annotations."""

    limit_milli: int | None
    """Total over all its cards; None if not given."""
    wishes: GpuRequest
    """Its constraints on cards and how they are chosen; the amounts in it are not used."""
    topology: str | None = None
    """One of `LEVELS`, on which all its cards must be close."""


_NONE: Final = Policies(limit_milli=None, wishes=GpuRequest())


def read_policies(
    annotations: Mapping[str, str], *, names: tuple[ContainerName, ...], asking: tuple[ContainerName, ...]
) -> dict[ContainerName, Policies]:
    """The policies of each container in `asking`; values may name any container in `names`."""
    said = [key for key in annotations if key.startswith(keys.PREFIX)]
    if not said:
        return dict.fromkeys(asking, _NONE)
    others = sorted(key for key in said if key not in _KNOWN)
    if others:
        raise unknown("annotations", others[0], _KNOWN)
    values: dict[ContainerName, dict[str, Any]] = {name: {} for name in names}
    for key, read in _READERS.items():
        if key in annotations:
            for name, text in by_container(key, annotations[key], names).items():
                values[name][key] = read(key, text)
    return {name: _policies(values[name]) for name in asking}


def read_budgets(
    annotations: Mapping[str, str], *, names: tuple[ContainerName, ...], by_default: tuple[ContainerName, ...]
) -> dict[ContainerName, BudgetName]:
    """The budget of each container that uses one: those named in the value, or else those in `by_default`."""
    text = annotations.get(keys.BUDGET)
    if text is None:
        return {}
    found = by_container(keys.BUDGET, text, names)
    is_for_all = ":" not in text
    return {
        name: BudgetName(_READERS[keys.BUDGET](keys.BUDGET, budget))
        for name, budget in found.items()
        if not is_for_all or name in by_default
    }


def _policies(said: Mapping[str, Any]) -> Policies:
    tags = Tags(
        affinity=said.get(keys.AFFINITY),
        anti_affinity=said.get(keys.ANTI_AFFINITY),
        exclusion=said.get(keys.EXCLUSION),
    )
    wishes = GpuRequest(
        tags=tags,
        models=said.get(keys.MODELS, ()),
        models_not=said.get(keys.MODELS_NOT, ()),
        cards=said.get(keys.CARDS, ()),
        cards_not=said.get(keys.CARDS_NOT, ()),
        policy=said.get(keys.POLICY),
        repeats_cards=said.get(keys.REPEAT_CARDS, False),
        movable=said.get(keys.MOVABLE, False),
    )
    return Policies(limit_milli=said.get(keys.LIMIT_MILLI), topology=said.get(keys.TOPOLOGY), wishes=wishes)


def by_container(key: str, text: str, names: tuple[ContainerName, ...]) -> dict[ContainerName, str]:
    """Parses one value for all, or `name: value; name: value` with a final semicolon allowed."""
    if len(text) > MAX_ANNOTATION_BYTES:
        raise _refused(key, f"{len(text)} characters long", f"at most {MAX_ANNOTATION_BYTES}")
    if ":" not in text and ";" not in text:
        return dict.fromkeys(names, text.strip())
    found: dict[ContainerName, str] = {}
    for entry in text.strip().removesuffix(";").split(";"):
        name, colon, value = entry.partition(":")
        container = ContainerName(name.strip())
        if not colon or container not in names or container in found:
            raise _refused(key, repr(entry.strip()), f"'<container>: <value>' once for each of {', '.join(names)}")
        found[container] = value.strip()
    return found


def _milli(key: str, text: str) -> int:
    return parse_whole_quantity(text, path=key, largest=MAX_CARDS * WHOLE_MILLI)


def _level(key: str, text: str) -> str:
    if text not in LEVELS:
        raise _refused(key, repr(text), f"one of {', '.join(LEVELS)}")
    return text


def _yes_or_no(key: str, text: str) -> bool:
    if text not in _ANSWERS:
        raise _refused(key, repr(text), "yes or no")
    return _ANSWERS[text]


def _one(pattern: str) -> Callable[[str, str], str]:
    def read(key: str, text: str) -> str:
        if re.search(pattern, text) is None:
            raise _refused(key, repr(text), _WORDS[pattern])
        return text

    return read


def _many(pattern: str) -> Callable[[str, str], tuple[str, ...]]:
    one = _one(pattern)

    def read(key: str, text: str) -> tuple[str, ...]:
        items = text.split(",")
        if len(items) > _MAX_ITEMS:
            raise _refused(key, f"a list of {len(items)}", f"at most {_MAX_ITEMS} items")
        return tuple(one(key, item.strip()) for item in items)

    return read


_READERS: Final[Mapping[str, Callable[[str, str], Any]]] = {
    keys.LIMIT_MILLI: _milli,
    keys.AFFINITY: _one(TAG_PATTERN),
    keys.ANTI_AFFINITY: _one(TAG_PATTERN),
    keys.EXCLUSION: _one(TAG_PATTERN),
    keys.MODELS: _many(_MODEL),
    keys.MODELS_NOT: _many(_MODEL),
    keys.CARDS: _many(CARD_ID_PATTERN),
    keys.CARDS_NOT: _many(CARD_ID_PATTERN),
    keys.POLICY: _one(_POLICY),
    keys.REPEAT_CARDS: _yes_or_no,
    keys.BUDGET: _one(CONTAINER_NAME_PATTERN),
    keys.TOPOLOGY: _level,
    keys.MOVABLE: _yes_or_no,
}


def unknown(path: str, key: str, known: Collection[str]) -> DecodeError:
    """The error for an unknown key below our prefix, with the key that was probably meant."""
    names, name = sorted(each.removeprefix(keys.PREFIX) for each in known), key.removeprefix(keys.PREFIX)
    near = get_close_matches(name, names, n=1, cutoff=_ALIKE) if len(key) <= _LONGEST_KEY else []
    value = f"{key!r} (did you mean {keys.PREFIX}{near[0]}?)" if near else repr(key)
    return _refused(path, value, f"{keys.PREFIX} with {', '.join(names)}")


def _refused(path: str, value: str, allowed: str) -> DecodeError:
    return DecodeError("request", path=path, value=value, allowed=allowed)
