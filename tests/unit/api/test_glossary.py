"""Every word of the glossary that names a thing is a type, and all types are immutable."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from partage_plugins import api

CONTRACTS = (Path(__file__).parents[3] / "docs/contracts.md").read_text()
GLOSSARY = CONTRACTS.partition("## Glossary")[2].partition("\n## ")[0]
AMOUNTS = {"Share": "share_milli", "Limit": "limit_milli", "Memory": "memory_bytes", "Movable": "movable"}
TYPES = {
    "Adjustment": "Adjustment",
    "Allocation": "Allocation",
    "Budget": "Budgeted",
    "Card": "Card",
    "Container key": "ContainerKey",
    "Grant": "GpuGrant",
    "Inventory": "Inventory",
    "Kind": "Kind",
    "PodRequest": "PodRequest",
    "Pool": "Pool",
    "Promise": "Promise",
    "Reason": "Reason",
    "Request": "GpuRequest",
    "Tag": "Tags",
}
NO_TYPES = {"Dialect", "Time slice", "Beyond"}  # a plugin; a word in a page that the broker writes; a field of a card


def test_the_glossary_and_the_types_name_the_same_things() -> None:
    assert set(re.findall(r"\*([A-Z][\w ]+)\*", GLOSSARY)) == set(TYPES) | set(AMOUNTS) | NO_TYPES
    assert set(TYPES.values()) <= set(api.__all__)
    fields = {field.name for field in msgspec.structs.fields(api.GpuGrant)}
    assert set(AMOUNTS.values()) <= fields


def structs() -> list[type[msgspec.Struct]]:
    named = [getattr(api, name) for name in api.__all__]
    return [each for each in named if isinstance(each, type) and issubclass(each, msgspec.Struct)]


@pytest.mark.parametrize("struct", structs())
def test_every_type_is_frozen(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.frozen
