"""A node's inventory: what is decoded, what is encoded, and what is preserved."""

from __future__ import annotations

import json
from types import MappingProxyType

import msgspec
import pytest
from hypothesis import given

from partage_plugins.api import GPU, CardHealth, HealthCause, Inventory, Kind, Reads, Ready
from partage_plugins.codecs import decode_inventory, encode_inventory
from partage_plugins.errors import DecodeError
from unit.codecs import documents, strategies


def raw(part: object) -> bytes:
    assert isinstance(part, msgspec.Raw)
    return bytes(part)


def test_the_contracts_example_becomes_typed_cards() -> None:
    inventory = decode_inventory(documents.text_of(documents.inventory(2)), (GPU,))
    part = inventory.part(GPU)
    assert part is not None
    assert inventory.reads == Reads(allocation=(1,))
    assert inventory.ready == Ready(crishim=True, broker=True)
    assert part.links == ((0, 18), (18, 0))
    card = part.cards[1]
    assert (card.index, card.memory_bytes, card.compute_capability, card.numa_node) == (1, 85017493504, "9.0", 0)
    assert part.card(card.id) is card
    assert part.card(documents.card_ids(3)[2]) is None  # type: ignore[arg-type]


def test_a_node_without_cards_has_no_part() -> None:
    assert decode_inventory('{"v":1,"kinds":{}}', (GPU,)).part(GPU) is None


def test_a_kind_without_an_owner_stays_json_as_it_was_written() -> None:
    text = '{"v":1,"kinds":{"npu":{"b": 1.50,  "a":[1e2,"\\u00e9"]}}}'
    inventory = decode_inventory(text, (GPU,))
    assert raw(inventory.kinds[Kind("npu")]) == b'{"b": 1.50,  "a":[1e2,"\\u00e9"]}'
    assert b'{"b": 1.50,  "a":[1e2,"\\u00e9"]}' in encode_inventory(inventory)


def test_asking_for_a_kind_that_was_not_decoded_is_a_programming_error() -> None:
    inventory = decode_inventory(documents.text_of(documents.inventory()), ())
    with pytest.raises(TypeError, match="decoded without kind 'gpu'"):
        inventory.part(GPU)


def test_equal_inventories_give_equal_bytes_whatever_the_order_of_their_kinds() -> None:
    inventory = decode_inventory(documents.text_of(documents.inventory()), (GPU,))
    part, other = inventory.kinds[GPU.name], msgspec.Raw(b"1")
    one = Inventory(kinds={GPU.name: part, Kind("npu"): other, Kind("a"): other})
    two = Inventory(kinds={Kind("a"): other, Kind("npu"): other, GPU.name: part})
    assert encode_inventory(one) == encode_inventory(two)


def test_equal_inventories_give_equal_bytes_whatever_the_order_in_the_text() -> None:
    document = documents.inventory()
    turned = {key: document[key] for key in reversed(document)}
    turned["kinds"] = {"gpu": dict(reversed(document["kinds"]["gpu"].items()))}
    one, two = (decode_inventory(documents.text_of(each), (GPU,)) for each in (document, turned))
    assert one == two
    assert encode_inventory(one) == encode_inventory(two)


def test_an_inventory_is_written_on_one_line() -> None:
    inventory = decode_inventory(json.dumps(documents.inventory(), indent=2), (GPU,))
    assert b"\n" not in encode_inventory(inventory)


def test_an_inventory_too_large_to_be_read_is_not_written() -> None:
    inventory = Inventory(kinds={Kind("npu"): msgspec.Raw(b'"' + b"x" * 262144 + b'"')})
    with pytest.raises(DecodeError, match="allowed: at most 262144 bytes"):
        encode_inventory(inventory)


def test_512_cards_fit_into_an_annotation() -> None:
    text = documents.text_of(documents.inventory(512, links=False))
    part = decode_inventory(text, (GPU,)).part(GPU)
    assert part is not None
    assert len(part.cards) == 512


@pytest.mark.parametrize(
    ("pool", "health", "allocatable", "lost"),
    [
        ("shared", "ok", True, False),
        ("shared", "degraded: one row remapped", False, False),
        ("shared", "lost", False, True),
        ("kubelet", "ok", False, False),
    ],
)
def test_only_healthy_shared_cards_are_allocatable(pool: str, health: str, *, allocatable: bool, lost: bool) -> None:
    document = documents.inventory(1)
    document["kinds"]["gpu"]["cards"][0].update(pool=pool, health=health)
    part = decode_inventory(documents.text_of(document), (GPU,)).part(GPU)
    assert part is not None
    assert (part.cards[0].is_allocatable, part.cards[0].is_lost) == (allocatable, lost)


@pytest.mark.parametrize(
    ("said", "read"), [({}, None), ({"cause": "paused"}, HealthCause.PAUSED), ({"cause": "new"}, HealthCause.OTHER)]
)
def test_a_cause_that_is_new_or_not_said_is_read_too(said: dict[str, str], read: HealthCause | None) -> None:
    document = documents.inventory(1)
    document["kinds"]["gpu"]["cards"][0] |= {"health": "degraded: paused: why", **said}
    part = decode_inventory(documents.text_of(document), (GPU,)).part(GPU)
    assert part is not None
    assert part.cards[0].condition == CardHealth("degraded", read, "paused: why")


def test_a_read_only_mapping_of_kinds_is_an_inventory_too() -> None:
    inventory = Inventory(kinds=MappingProxyType({}))
    assert inventory.part(GPU) is None


@given(strategies.inventories)
def test_what_is_written_reads_as_the_same(inventory: Inventory) -> None:
    text = encode_inventory(inventory)
    again = decode_inventory(text, (GPU,))
    assert (again.reads, again.ready, again.part(GPU)) == (inventory.reads, inventory.ready, inventory.part(GPU))
    assert {k: raw(v) for k, v in again.kinds.items() if k != GPU.name} == {
        k: raw(v) for k, v in inventory.kinds.items() if k != GPU.name
    }
    assert encode_inventory(again) == text
