"""A look returns every card with its properties, its health, and its links."""

from __future__ import annotations

from pathlib import Path

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.discovery.asked import ONE, THREE, TWO, Asked, asked, laid_out_anew
from support.simgpu import NODE, card, card_uuid, simulated_node

pytestmark = pytest.mark.slow

MIB = 1 << 20


def test_cards_are_told_with_all_that_nvml_knows(driver: Asked) -> None:
    facts = driver.facts()
    assert (facts.driver, facts.cuda, facts.silent) == ("580.95.05", "13.0", ())
    assert [one.uuid for one in facts.cards] == [ONE, TWO, THREE]
    first, _, third = facts.cards
    assert (first.model, first.compute_capability) == ("NVIDIA H100 80GB HBM3", "9.0")
    assert (first.memory_bytes, first.reserved_bytes) == (81559 * MIB, 450 * MIB)
    assert (first.index, first.minor, first.pci, first.figures["numa_node"]) == (0, 0, "0000:18:00.0", 0)
    assert (first.figures["pcie_generation"], third.figures["pcie_generation"]) == (5, 4)
    assert (third.index, third.minor, third.figures["numa_node"], third.model) == (2, 2, 1, "NVIDIA GeForce RTX 4090")


def test_what_a_card_does_not_have_is_none_and_no_fault(driver: Asked) -> None:
    game = driver.card(THREE)
    assert (game.ecc_uncorrected, game.is_mig, game.instances, game.links, game.fault) == (None, False, (), {}, None)
    assert (game.row_remap_failed, game.needs_reset) == (False, False)


def test_links_are_counted_for_every_pair(tmp_path: Path) -> None:
    with simulated_node(tmp_path, cards=("h100",) * 8) as node, asked(node.root) as driver:
        cards = driver.facts().cards
        for one in cards:
            assert set(one.links) == {other.uuid for other in cards} - {one.uuid}
            assert sum(one.links.values()) == 18


def test_cards_behind_one_switch_say_the_same_switch(tmp_path: Path) -> None:
    with simulated_node(tmp_path, cards=("l4",) * 6) as node, asked(node.root) as driver:
        switches = [one.figures["pcie_switch"] for one in driver.facts().cards]
    assert switches == [0, 0, 2, 3, 3, 5]


def test_links_through_a_switch_reach_every_card_behind_it(tmp_path: Path) -> None:
    """NVML then names no card at the other end."""

    def without_ends(conf: str) -> str:
        return "".join(line for line in conf.splitlines(keepends=True) if not line.startswith("link_to"))

    with simulated_node(tmp_path, cards=("h100",) * 8) as node:
        laid_out_anew(node, without_ends)
        with asked(node.root) as driver:
            cards = driver.facts().cards
            pairs = [one.links[other.uuid] for one in cards for other in cards if other is not one]
            assert pairs == [18] * 56


def test_mig_instances_are_told_with_their_profiles(tmp_path: Path) -> None:
    cut = card("h100", mig=("1g.10gb", "3g.40gb"))
    with simulated_node(tmp_path, cards=(cut, "h100")) as node, asked(node.root) as driver:
        first, second = driver.facts().cards
        assert first.is_mig
        assert sorted(one.profile for one in first.instances) == ["1g.10gb", "3g.40gb"]
        assert all(one.uuid.startswith("MIG-") for one in first.instances)
        assert all(0 < one.memory_bytes < first.memory_bytes and one.used_bytes == 0 for one in first.instances)
        assert not second.is_mig


def test_sixteen_cards_of_three_kinds_are_told(tmp_path: Path) -> None:
    names = ("h100",) * 8 + ("l4",) * 4 + ("t4",) * 4
    with simulated_node(tmp_path, cards=names) as node, asked(node.root) as driver:
        cards = driver.facts().cards
        assert [one.uuid for one in cards] == [card_uuid(NODE, ordinal) for ordinal in range(16)]
        assert {one.compute_capability for one in cards} == {"9.0", "8.9", "7.5"}


def test_samples_measure_cards_and_instances(tmp_path: Path) -> None:
    cut = card("h100", mig=("1g.10gb",))
    with simulated_node(tmp_path, cards=(cut, "t4")) as node, asked(node.root) as driver:
        assert driver.driver.samples() == ()  # there was no look, so nothing is started
        instance = driver.facts().cards[0].instances[0]
        samples = {one.uuid: one for one in driver.driver.samples()}
    assert list(samples) == [card_uuid(NODE, 0), instance.uuid, card_uuid(NODE, 1)]
    whole, part, other = samples.values()
    assert (whole.used_bytes, whole.utilisation) == (0, None)  # NVML reports no utilisation of a card in MIG mode
    assert whole.temperature_celsius is not None
    assert whole.power_watts is not None
    assert (part.total_bytes, part.utilisation) == (instance.memory_bytes, None)
    assert (other.model, other.total_bytes, other.utilisation) == ("Tesla T4", 15360 * MIB, 0.0)


def test_the_same_is_told_again_while_nothing_changes(node: SimulatedNode, driver: Asked) -> None:
    assert driver.facts() == driver.facts()
    node.control("ecc 0 corrected 1")
    assert driver.card(ONE).ecc_uncorrected == 0
