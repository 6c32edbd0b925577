# pyright: reportPrivateUsage=false
"""No wire type, present or future, accepts an unbounded integer, text or collection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec import inspect

from partage_plugins.api import GPU
from partage_plugins.codecs import allocation, inventory

WIRE_TYPES: dict[str, Any] = {
    "inventory": inventory._InventoryEnvelope,
    "allocation": allocation._Envelope,
    "container annotation": allocation._ContainerEnvelope,
    "cards of a node": GPU.part,
    "grants of a container": allocation._grants_of(GPU),
}
UNBOUNDED_ON_PURPOSE: dict[str, str] = {}
"""Paths that may be unbounded, each with its reason. None needs this today."""
_NEED_NO_BOUND = (
    inspect.BoolType,
    inspect.EnumType,
    inspect.NoneType,
    inspect.LiteralType,
    inspect.StructType,
    inspect.UnionType,
    inspect.Metadata,
)


def below(info: inspect.Type, path: str) -> Iterator[tuple[str, inspect.Type]]:
    """A type and all types inside it, with their paths."""
    yield path, info
    match info:
        case inspect.Metadata(type=inner):
            yield from below(inner, path)
        case inspect.UnionType(types=types):
            for choice in types:
                yield from below(choice, path)
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from below(field.type, f"{path}.{field.encode_name}")
        case inspect.DictType(key_type=key, value_type=value):
            yield from below(key, f"{path}.<key>")
            yield from below(value, f"{path}[]")
        case inspect.VarTupleType(item_type=item):
            yield from below(item, f"{path}[]")
        case _:
            pass


def is_bounded(info: inspect.Type) -> bool:
    """Whether the type itself is bounded, regardless of the types inside it."""
    match info:
        case inspect.DictType(max_length=longest) | inspect.VarTupleType(max_length=longest):
            return longest is not None
        case inspect.IntType(ge=low, le=high):
            return low is not None and high is not None
        case inspect.StrType(pattern=pattern, max_length=longest):
            return pattern is not None or longest is not None
        case inspect.RawType():
            return True  # opaque: bounded by the size of the whole text, and typed by the owner of its kind
        case _:
            return isinstance(info, _NEED_NO_BOUND)


def unbounded(info: inspect.Type) -> list[str]:
    """The paths of unbounded types."""
    found = [path for path, inner in below(info, "$") if not is_bounded(inner)]
    return [path for path in found if path not in UNBOUNDED_ON_PURPOSE]


@pytest.mark.parametrize("name", WIRE_TYPES)
def test_everything_on_the_wire_has_a_bound(name: str) -> None:
    assert unbounded(inspect.type_info(WIRE_TYPES[name])) == []


@pytest.mark.parametrize(
    ("type_", "found"),
    [
        (int, ["$"]),
        (str, ["$"]),
        (float, ["$"]),
        (tuple[int, ...], ["$", "$[]"]),
        (dict[str, bool], ["$", "$.<key>"]),
        (Any, ["$"]),
    ],
)
def test_the_walk_sees_what_has_no_bound(type_: Any, found: list[str]) -> None:
    assert unbounded(inspect.type_info(type_)) == found


def test_every_pattern_is_anchored_at_both_ends_and_repeats_a_bounded_number_of_times() -> None:
    """Texts are then checked in linear time, and a line break at the end is not overlooked."""
    inside = (info for type_ in WIRE_TYPES.values() for _, info in below(inspect.type_info(type_), "$"))
    patterns = {info.pattern for info in inside if isinstance(info, inspect.StrType) and info.pattern is not None}
    assert len(patterns) >= 7
    for pattern in patterns:
        assert pattern.startswith(r"\A")
        assert pattern.endswith(r"\Z")
        assert not set(pattern.replace(r"\.", "")) & set("*+")
