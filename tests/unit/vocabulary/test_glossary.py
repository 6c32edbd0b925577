"""Every word of the glossary that names a thing is a type, and no type can be changed once it is made."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from partage_plugins import vocabulary
from partage_plugins.vocabulary import CardId, ContainerKey, Lease

CONTRACTS = (Path(__file__).parents[3] / "docs/contracts.md").read_text()
GLOSSARY = CONTRACTS.partition("## Glossary")[2].partition("\n## ")[0]
AMOUNTS = {"Share": "share_milli", "Limit": "limit_milli", "Memory": "memory_bytes"}
TYPES = {
    "Adjustment": "Adjustment",
    "Allocation": "Allocation",
    "Card": "Card",
    "Container key": "ContainerKey",
    "Grant": "GpuGrant",
    "Inventory": "Inventory",
    "Kind": "Kind",
    "Lease": "Lease",
    "PodRequest": "PodRequest",
    "Pool": "Pool",
    "Promise": "Promise",
    "Reason": "Reason",
    "Request": "GpuRequest",
    "Tag": "Tags",
}
A_PLUGIN = {"Dialect"}  # partage_requests


def test_the_glossary_and_the_types_name_the_same_things() -> None:
    assert set(re.findall(r"\*([A-Z][\w ]+)\*", GLOSSARY)) == set(TYPES) | set(AMOUNTS) | A_PLUGIN
    assert set(TYPES.values()) <= set(vocabulary.__all__)
    fields = {field.name for field in msgspec.structs.fields(vocabulary.GpuGrant)}
    assert set(AMOUNTS.values()) <= fields


def structs() -> list[type[msgspec.Struct]]:
    named = [getattr(vocabulary, name) for name in vocabulary.__all__]
    return [each for each in named if isinstance(each, type) and issubclass(each, msgspec.Struct)]


@pytest.mark.parametrize("struct", structs())
def test_every_type_is_frozen(struct: type[msgspec.Struct]) -> None:
    assert struct.__struct_config__.frozen


def test_a_lease_ends_at_its_deadline() -> None:
    lease = Lease(card=CardId("GPU-1"), container=ContainerKey("0" * 32), until_ns=100)
    assert [lease.holds(now) for now in (0, 99, 100, 101)] == [True, True, False, False]
