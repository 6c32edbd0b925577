"""A card's fault wakes the watcher, and a failing card hides no other."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from isolation.audit.holders import holders
from partage_gpu.nvml.facts import Xid
from partage_simgpu.node import SimulatedNode
from simgpu.discovery.asked import ONE, THREE, TWO, Asked, asked, laid_out_anew
from support.simgpu import simulated_node
from support.steered import eventually

pytestmark = pytest.mark.slow


def hears(driver: Asked, node: SimulatedNode, *, card: int, uuid: str) -> None:
    """Wait until XIDs of that card arrive.

    The watch is extended to other cards within a second; earlier events are lost.
    """

    def told() -> bool:
        node.control(f"xid {card} 62")
        driver.driver.look()
        return Xid(uuid=uuid, number=62) in driver.driver.xids()

    eventually(told, f"XIDs of {uuid} are told")


def test_an_xid_is_told_once_and_wakes(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    driver.wakes(lambda: node.control("xid 1 48"))
    assert driver.xids(1) == [Xid(uuid=TWO, number=48)]
    assert driver.driver.xids() == ()


def test_xids_keep_their_order(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    for number in (61, 62, 69):
        node.control(f"xid 0 {number}")
    assert [one.number for one in driver.xids(3)] == [61, 62, 69]


def test_an_uncorrected_error_wakes_and_is_counted(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    driver.wakes(lambda: node.control("ecc 0 uncorrected 2"))
    assert driver.card(ONE).ecc_uncorrected == 2
    assert driver.card(TWO).ecc_uncorrected == 0


def test_a_lost_card_is_told_with_all_that_was_known_and_the_others_stay(node: SimulatedNode, driver: Asked) -> None:
    before = driver.card(ONE)
    driver.wakes(lambda: node.control("lose 0"))
    assert driver.xids(1) == [Xid(uuid=ONE, number=79)]
    lost = driver.card(ONE)
    assert lost.fault == "GPU is lost (15)"
    assert (lost.pci, lost.memory_bytes, lost.model) == (before.pci, before.memory_bytes, before.model)
    assert [one.fault for one in driver.facts().cards[1:]] == [None, None]
    assert {one.uuid for one in driver.driver.samples()} == {TWO, THREE}


def test_a_card_that_comes_back_wakes_and_its_xids_are_told_again(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    driver.wakes(lambda: node.control("lose 0"))
    assert driver.card(ONE).fault is not None
    driver.wakes(lambda: node.control("restore 0"))
    assert driver.card(ONE).fault is None
    driver.xids(1)
    hears(driver, node, card=0, uuid=ONE)


def test_others_xids_are_told_while_a_card_is_lost(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    node.control("lose 0")
    driver.xids(1)
    hears(driver, node, card=1, uuid=TWO)


def test_a_card_that_was_lost_before_the_first_look_is_silent(node: SimulatedNode, driver: Asked) -> None:
    node.control("lose 0")
    facts = driver.facts()
    assert [one.uuid for one in facts.cards] == [TWO, THREE]
    assert [(one.index, one.fault) for one in facts.silent] == [(0, "GPU is lost (15)")]


def test_a_card_that_is_pulled_out_is_told_no_more(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()

    def without_the_last(conf: str) -> str:
        return re.sub(r"link_to.*\n", "", conf[: conf.rindex("[card]")])

    driver.wakes(lambda: laid_out_anew(node, without_the_last))
    assert [one.uuid for one in driver.facts().cards] == [ONE, TWO]


def test_cards_that_come_in_another_order_keep_who_they_are(node: SimulatedNode, driver: Asked) -> None:
    before = {one.uuid: one.pci for one in driver.facts().cards}

    def reversed_order(conf: str) -> str:
        head, *cards = re.sub(r"link_to.*\n", "", conf).split("[card]")
        return head + "".join("[card]" + one.rstrip() + "\n\n" for one in reversed(cards))

    driver.wakes(lambda: laid_out_anew(node, reversed_order))
    after = driver.facts().cards
    assert [one.uuid for one in after] == [THREE, TWO, ONE]
    assert {one.uuid: one.pci for one in after} == before


def test_a_card_that_the_kernel_finds_later_is_looked_for_by_a_new_process(node: SimulatedNode, driver: Asked) -> None:
    driver.facts()
    pid = driver.pid
    known = node.root / "proc/driver/nvidia/gpus"
    driver.wakes(lambda: shutil.copytree(next(known.iterdir()), known / "0000:ff:00.0"))
    driver.facts()
    assert driver.pid != pid


def test_a_second_program_that_asks_is_not_disturbed(node: SimulatedNode, driver: Asked) -> None:
    with asked(node.root) as other:
        assert driver.facts() == other.facts()
        other.driver.close()
        assert driver.facts().cards


def test_what_nvml_does_not_tell_of_processes_is_told(tmp_path: Path) -> None:
    with simulated_node(tmp_path, cards=("h100", "h100")) as node, asked(node.root) as driver:

        def comes(uuid: str, tells: bool | None) -> None:  # noqa: FBT001  as the fact has it
            eventually(lambda: driver.card(uuid).tells_use is tells, f"{uuid} is told with {tells}")

        comes(ONE, None)
        with holders(node):
            comes(ONE, True)
            node.control("blind 0 bytes")
            comes(ONE, False)
        comes(ONE, None)
        node.control("blind 1 lists")
        comes(TWO, False)


def test_a_card_that_shares_the_hosts_memory_is_told_with_that_and_tells_no_use(node: SimulatedNode) -> None:
    node.control("blind 0 memory")
    with asked(node.root) as driver:
        shared = driver.card(ONE)
    assert (shared.has_own_memory, shared.tells_use) == (False, False)
    assert shared.memory_bytes == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
