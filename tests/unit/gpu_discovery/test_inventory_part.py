"""The inventory's part: usable memory, order and links; equal hardware gives equal text."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.discovery.known import KnownCards, recalled_cards, seen
from partage_gpu.discovery.parts import Findings, part_of
from partage_gpu.discovery.pool import Pools
from partage_gpu.nvml.facts import CardFacts
from partage_plugins.api import Card, GpuPart
from partage_plugins.api.gpu import FIGURES, MIB
from unit.gpu_discovery.making import GIB, MIG_A, ONE, THREE, TWO, MadeNode, gpu, instance, node_of

NOTHING = Findings(histories={}, pools=Pools())


def test_usable_memory_is_what_the_driver_and_the_reserve_leave(node: MadeNode) -> None:
    node.settings = {"PARTAGE_GPU_RESERVE_MIB": "512"}
    node.begin()
    node.driver.says = node_of(
        gpu(reserved_bytes=GIB), gpu(TWO, 1, is_mig=True, instances=(instance(MIG_A),)), gpu(THREE, 2, memory_bytes=MIB)
    )
    assert [card.memory_bytes for card in node.look()] == [79 * GIB - 512 * MIB, 10 * GIB - 512 * MIB, 0]


def test_what_the_driver_reserves_may_move_without_a_change(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(reserved_bytes=600 * MIB))
    before = node.look()
    node.driver.says = node_of(gpu(reserved_bytes=599 * MIB))
    assert node.look() == before
    node.driver.says = node_of(gpu(reserved_bytes=700 * MIB))
    assert node.look()[0].memory_bytes == 80 * GIB - 700 * MIB


def test_cards_stand_in_the_order_of_their_places(node: MadeNode) -> None:
    node.driver.says = node_of(
        gpu(ONE, 0, pci="00000000:C1:00.0"),
        gpu(TWO, 1, pci="0000:18:00.0"),
        gpu(THREE, 2, pci="00010000:01:00.0"),
    )
    cards = node.look()
    assert [(card.id, card.index, card.pci) for card in cards] == [
        (TWO, 0, "0000:18:00.0"),
        (ONE, 1, "0000:c1:00.0"),
        (THREE, 2, "10000:01:00.0"),
    ]


def test_links_are_told_in_the_order_of_the_cards_and_survive_a_loss(node: MadeNode) -> None:
    whole = (gpu(ONE, 0, links={TWO: 18}), gpu(TWO, 1, links={ONE: 18}), gpu(THREE, 2))
    node.driver.says = node_of(*whole)
    node.look()
    assert node.found is not None
    assert node.found.links == ((0, 18, 0), (18, 0, 0), (0, 0, 0))
    node.driver.says = node_of(gpu(ONE, 0), whole[2])
    node.look()
    assert node.found.links == ((0, 18, 0), (18, 0, 0), (0, 0, 0))
    node.begin()
    node.look()
    assert node.found.links == ((0, 18, 0), (18, 0, 0), (0, 0, 0))


def test_instances_have_no_links_and_cards_without_any_have_no_table(node: MadeNode) -> None:
    cut = gpu(ONE, 0, links={TWO: 18}, is_mig=True, instances=(instance(MIG_A),))
    node.driver.says = node_of(cut, gpu(TWO, 1, links={ONE: 18}))
    node.look()
    assert node.found is not None
    assert node.found.links == ()


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("model", "", "unknown"),
        ("model", "H\x1b100\n", "H 100"),
        ("model", "x" * 500, "x" * 127 + "…"),
        ("pci", "?", "?"),
        ("compute_capability", "x", "0.0"),
    ],
)
def test_what_a_driver_says_wrongly_costs_no_other_card(
    node: MadeNode, field: str, value: object, shown: object
) -> None:
    node.driver.says = node_of(gpu(ONE, 0), gpu(TWO, 1, **{field: value}))
    cards: dict[str, Card] = {card.id: card for card in node.look()}
    assert set(cards) == {ONE, TWO}
    assert getattr(cards[TWO], field) == shown


@pytest.mark.parametrize(("says", "shown"), [({"numa_node": 1, "pool": 2}, 1), ({"numa_node": -1}, None), ({}, None)])
def test_a_figure_that_no_card_can_have_is_not_known(node: MadeNode, says: dict[str, int], shown: int | None) -> None:
    node.driver.says = node_of(gpu(ONE, figures=says))
    (card,) = node.look()
    assert (card.numa_node, card.pool) == (shown, "shared")


@st.composite
def any_facts(draw: st.DrawFn, uuid: str) -> CardFacts:
    """One GPU with plausible or implausible facts."""
    instances = draw(
        st.lists(st.tuples(st.integers(1, 3), st.text(max_size=5)), max_size=3, unique_by=lambda pair: pair[0])
    )
    return CardFacts(
        uuid=uuid,
        index=draw(st.integers(0, 20)),
        minor=draw(st.none() | st.integers(0, 20)),
        model=draw(st.text(max_size=10)),
        memory_bytes=draw(st.integers(-1, 2**40)),
        reserved_bytes=draw(st.integers(0, 2**40)),
        compute_capability=draw(st.sampled_from(("9.0", "", "8.6", "nine"))),
        pci=draw(st.sampled_from(("0000:18:00.0", "00000000:19:00.0", "", "x"))),
        figures=draw(st.dictionaries(st.sampled_from((*FIGURES, "pool")), st.integers(-1, 70000))),
        is_mig=draw(st.booleans()),
        instances=tuple(instance(f"MIG-{uuid[4]}-{number}", profile) for number, profile in instances),
        links=draw(st.dictionaries(st.sampled_from((ONE, TWO, THREE, "GPU-x")), st.integers(-1, 70000))),
        fault=draw(st.none() | st.text(max_size=5)),
    )


LOOKS = st.lists(
    st.sets(st.sampled_from((ONE, TWO, THREE))).flatmap(lambda ids: st.tuples(*map(any_facts, sorted(ids))))
)


@given(LOOKS)
def test_whatever_looks_show_the_part_can_be_written_and_says_the_same_in_any_order(
    looks: list[tuple[CardFacts, ...]],
) -> None:
    known = other = KnownCards()
    for gpus in looks:
        known = seen(known, node_of(*gpus), reserve_bytes=MIB)
        other = seen(other, node_of(*reversed(gpus)), reserve_bytes=MIB)
    part = part_of(known, NOTHING)
    assert part == part_of(other, NOTHING)
    if part is not None:
        assert msgspec.convert(msgspec.to_builtins(part), GpuPart) == part
        assert part_of(recalled_cards(part), NOTHING) == part
