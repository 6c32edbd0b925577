"""A card once seen is known: it is reported as lost when it disappears, across restarts and renumbering."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.nvml.facts import SilentCard
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.errors import Refused
from unit.gpu_discovery.making import (
    HANGS,
    MIG_A,
    MIG_B,
    NO_LIBRARY,
    ONE,
    STARTS,
    TWO,
    MadeNode,
    gpu,
    instance,
    node_of,
)

GONE = "lost: the driver no longer shows this card; was it taken out?"
CAME_BACK = "degraded: came back, being watched"


def test_on_a_node_without_a_driver_there_is_nothing(node: MadeNode) -> None:
    node.driver.says = NO_LIBRARY
    assert node.look() == ()
    assert node.found is None


def test_on_a_node_with_a_driver_and_no_card_there_is_nothing(node: MadeNode) -> None:
    node.driver.says = node_of()
    node.look()
    assert node.found is None


def test_a_card_that_disappears_is_lost_and_keeps_what_is_known_of_it(node: MadeNode) -> None:
    _, before = node.look()
    node.driver.says = node_of(gpu())
    _, after = node.look()
    assert (after.health, after.lost_because) == ("lost", GONE.removeprefix("lost: "))
    assert (after.id, after.model, after.memory_bytes, after.pci, after.index) == (
        before.id,
        before.model,
        before.memory_bytes,
        before.pci,
        before.index,
    )


def test_a_silent_card_is_lost_with_what_it_answers(node: MadeNode) -> None:
    node.look()
    node.driver.says = node_of(gpu(), silent=(SilentCard(index=1, fault="GPU is lost"),))
    assert node.health() == {ONE: "ok", TWO: "lost: GPU is lost"}


def test_a_new_start_knows_the_cards_that_are_away(node: MadeNode) -> None:
    node.look()
    node.driver.says = node_of(gpu())
    before = node.look()
    node.begin()
    assert node.look() == before
    assert before[1].is_lost


def test_a_new_start_while_the_driver_hangs_knows_all_cards(node: MadeNode) -> None:
    node.look()
    node.driver.says = HANGS
    node.begin()
    assert node.health() == dict.fromkeys((ONE, TWO), "lost: the NVIDIA driver does not answer")
    assert node.found is not None
    assert (node.found.driver, node.found.cuda) == ("580.65.06", "13.0")


def test_a_new_start_tells_what_was_told_until_the_driver_answers(node: MadeNode) -> None:
    node.xid(ONE, 48)
    before = node.look()
    node.driver.says = STARTS
    node.begin()
    assert node.look() == before


def test_where_nothing_is_known_a_driver_that_was_opened_just_now_is_not_taken_for_one_without_cards(
    node: MadeNode,
) -> None:
    node.driver.says = STARTS
    with pytest.raises(Refused, match="has not said yet"):
        node.look()
    node.driver.says = node_of(gpu())
    assert node.health() == {ONE: "ok"}


def test_an_error_is_told_though_the_driver_was_opened_just_now(node: MadeNode) -> None:
    node.look()
    node.driver.says = STARTS
    node.xid(ONE, 94)
    assert node.health()[ONE] == "ok"
    node.driver.says = node_of(gpu(), gpu(TWO, 1))
    assert node.health()[ONE].startswith("degraded: XID 94")


def test_a_new_start_makes_no_degraded_card_ok_at_once(node: MadeNode) -> None:
    node.xid(ONE, 94)
    before = node.health()
    node.begin()
    assert node.health() == before
    assert node.health(after_s=54)[ONE] == before[ONE]
    assert node.health(after_s=6)[ONE] == "ok"


def test_a_new_start_changes_no_healthy_card_though_it_counts_old_errors(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(ecc_uncorrected=5))
    node.look()
    node.look(after_s=60)
    node.begin()
    assert node.health() == {ONE: "ok"}
    node.driver.says = node_of(gpu(ecc_uncorrected=6))
    assert node.health()[ONE] != "ok"


def test_a_lost_card_that_is_back_after_a_new_start_is_watched(node: MadeNode) -> None:
    node.look()
    node.driver.says = NO_LIBRARY
    node.look()
    node.begin()
    node.driver.says = node_of(gpu(), gpu(TWO, 1))
    assert set(node.health().values()) == {CAME_BACK}
    assert set(node.health(after_s=60).values()) == {"ok"}


def test_after_a_reboot_removed_cards_are_forgotten(node: MadeNode) -> None:
    node.look()
    (node.root / INVENTORY_FILE).unlink()
    node.driver.says = node_of(gpu())
    node.begin()
    assert node.health() == {ONE: "ok"}


@pytest.mark.parametrize("content", ["", "{", '{"v":1,"kinds":{"gpu":{}}}', '{"v":1,"kinds":{}}', "\x00" * 300_000])
def test_an_inventory_that_is_no_inventory_is_passed_over(node: MadeNode, content: str) -> None:
    node.write(INVENTORY_FILE, content)
    node.begin()
    assert node.health() == {ONE: "ok", TWO: "ok"}


def test_an_inventory_that_cannot_be_read_is_passed_over(node: MadeNode) -> None:
    (node.root / INVENTORY_FILE).mkdir(parents=True)
    node.begin()
    assert node.discovery.discover(None) is not None


@given(st.binary(max_size=200))
def test_any_bytes_as_the_last_inventory_start_well(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    node = MadeNode(tmp_path_factory.mktemp("node"))
    node.write(INVENTORY_FILE, content)
    node.begin()
    assert set(node.health()) >= {ONE, TWO}


def test_other_numbers_after_a_reload_change_nothing(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(ONE, 0, pci="0000:18:00.0"), gpu(TWO, 1, pci="0000:19:00.0"))
    before = node.look()
    node.driver.says = node_of(gpu(TWO, 0, pci="0000:19:00.0"), gpu(ONE, 1, pci="0000:18:00.0"))
    assert node.look() == before


class TestMig:
    """A GPU that is split into instances is represented by them."""

    CUT = gpu(is_mig=True, instances=(instance(MIG_A), instance(MIG_B)))

    def test_instances_are_cards_with_their_parent_which_is_none(self, node: MadeNode) -> None:
        node.driver.says = node_of(self.CUT)
        cards = node.look()
        assert [(card.id, card.parent, card.mig_profile) for card in cards] == [
            (MIG_A, ONE, "1g.10gb"),
            (MIG_B, ONE, "1g.10gb"),
        ]

    def test_an_instance_that_its_gpu_no_longer_lists_is_dropped(self, node: MadeNode) -> None:
        node.driver.says = node_of(self.CUT)
        node.look()
        node.driver.says = node_of(gpu(is_mig=True, instances=(instance(MIG_A),)))
        assert node.health() == {MIG_A: "ok"}

    def test_cutting_a_gpu_and_making_it_whole_again_leaves_nothing(self, node: MadeNode) -> None:
        node.driver.says = node_of(gpu())
        assert node.health() == {ONE: "ok"}
        node.driver.says = node_of(self.CUT)
        assert node.health() == {MIG_A: "ok", MIG_B: "ok"}
        node.driver.says = node_of(gpu())
        assert node.health() == {ONE: "ok"}

    @pytest.mark.parametrize("restarted", [False, True])
    def test_instances_of_a_gpu_that_is_lost_are_lost(self, node: MadeNode, *, restarted: bool) -> None:
        node.driver.says = node_of(self.CUT, gpu(TWO, 1))
        node.look()
        if restarted:
            node.begin()
        node.driver.says = node_of(gpu(fault="GPU is lost"), gpu(TWO, 1))
        assert node.health() == {MIG_A: "lost: GPU is lost", MIG_B: "lost: GPU is lost", TWO: "ok"}

    @pytest.mark.parametrize("reported", [ONE, MIG_A])
    def test_an_error_concerns_the_whole_gpu(self, node: MadeNode, reported: str) -> None:
        node.driver.says = node_of(self.CUT, gpu(TWO, 1))
        node.look()
        node.xid(reported, 95)
        health = node.health()
        assert health[MIG_A] == health[MIG_B] != "ok"
        assert health[TWO] == "ok"

    def test_new_instances_of_a_degraded_gpu_are_degraded(self, node: MadeNode) -> None:
        node.driver.says = node_of(gpu())
        node.xid(ONE, 95)
        node.look()
        node.driver.says = node_of(self.CUT)
        assert node.health()[MIG_A].startswith("degraded: XID 95")


def test_an_error_of_a_card_that_nobody_knows_is_passed_over(node: MadeNode) -> None:
    node.xid("GPU-unknown", 79)
    assert set(node.health().values()) == {"ok"}


def test_a_card_in_another_folder_is_not_ours(node: MadeNode, tmp_path: Path) -> None:
    node.look()
    other = MadeNode(tmp_path / "other")
    other.driver.says = NO_LIBRARY
    assert other.look() == ()
