"""A card's health: problems are reported at once; it is ok again only after a quiet period."""

from __future__ import annotations

import pytest

from partage_gpu.nvml.facts import Trouble
from unit.gpu_discovery.making import HANGS, ONE, SLOW, STARTS, TWO, MadeNode, gpu, node_of

CAME_BACK = "degraded: came back, being watched"
WANTS_RESET = "degraded: the driver asks for a reset; drain the node and reset the card"
DOUBLE_BIT = "degraded: XID 48: double bit ECC error; drain the node and reset the card"
CONTAINED = "degraded: XID 94: an error of memory was contained to one program"


def test_an_error_degrades_its_card_alone_and_at_once(node: MadeNode) -> None:
    node.look()
    node.xid(TWO, 94)
    assert node.health() == {ONE: "ok", TWO: CONTAINED}


def test_a_programs_own_fault_changes_nothing(node: MadeNode) -> None:
    node.xid(ONE, 13, 31, 43, 45)
    assert node.health()[ONE] == "ok"


def test_a_degraded_card_is_ok_after_a_quiet_period_and_not_before(node: MadeNode) -> None:
    node.xid(ONE, 94)
    node.look()
    assert node.health(after_s=59)[ONE] == CONTAINED
    assert node.health(after_s=1)[ONE] == "ok"


def test_an_error_while_it_is_watched_starts_quiet_anew(node: MadeNode) -> None:
    node.xid(ONE, 94)
    node.look()
    node.xid(ONE, 94)
    node.look(after_s=50)
    assert node.health(after_s=59)[ONE] == CONTAINED
    assert node.health(after_s=1)[ONE] == "ok"


def test_of_several_errors_the_gravest_is_told_and_the_first_of_equal_ones(node: MadeNode) -> None:
    node.xid(ONE, 94, 48)
    assert node.health()[ONE] == DOUBLE_BIT
    node.xid(ONE, 62, 94)
    assert node.health()[ONE] == DOUBLE_BIT


def test_each_relapse_doubles_the_quiet_that_is_asked_for(node: MadeNode) -> None:
    for quiet_s in (60, 120, 240, 480, 960, 1920, 3600, 3600):
        node.xid(ONE, 94)
        assert node.health()[ONE] == CONTAINED
        assert node.health(after_s=quiet_s - 1)[ONE] == CONTAINED
        assert node.health(after_s=1)[ONE] == "ok"


def test_a_day_of_health_makes_relapses_forgotten(node: MadeNode) -> None:
    for after_s in (0, 10, 86400):
        node.xid(ONE, 94)
        assert node.health(after_s=after_s)[ONE] == CONTAINED
        quiet_s = 120 if after_s == 10 else 60
        assert node.health(after_s=quiet_s - 1)[ONE] == CONTAINED
        assert node.health(after_s=1)[ONE] == "ok"


def test_what_needs_a_reset_stays_without_one_but_not_for_ever(node: MadeNode) -> None:
    node.xid(ONE, 48)
    node.look()
    assert node.health(after_s=3599)[ONE] == DOUBLE_BIT
    assert node.health(after_s=1)[ONE] == "ok"


def test_what_needs_a_reset_is_watched_when_errors_are_counted_anew(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(ecc_uncorrected=2))
    node.xid(ONE, 48)
    assert node.health()[ONE] == DOUBLE_BIT
    node.driver.says = node_of(gpu(ecc_uncorrected=0))
    assert node.health()[ONE] == CAME_BACK
    assert node.health(after_s=60)[ONE] == "ok"


def test_a_reset_that_the_driver_asks_for_is_told_until_it_is_done(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(needs_reset=True))
    assert node.health()[ONE] == WANTS_RESET
    assert node.health(after_s=100_000)[ONE] == WANTS_RESET
    node.driver.says = node_of(gpu())
    assert node.health()[ONE] == CAME_BACK
    assert node.health(after_s=59)[ONE] == CAME_BACK
    assert node.health(after_s=1)[ONE] == "ok"


def test_a_card_without_spare_rows_stays_degraded(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(row_remap_failed=True, needs_reset=True))
    words = "degraded: no spare rows of memory are left; drain the node and have the card replaced"
    assert node.health()[ONE] == words
    assert node.health(after_s=100_000)[ONE] == words


def test_more_uncorrected_errors_degrade_a_card_and_the_same_number_does_not(node: MadeNode) -> None:
    node.look()
    node.driver.says = node_of(gpu(ecc_uncorrected=1))
    assert node.health()[ONE].startswith("degraded: an error of memory that ECC could not correct")
    assert node.health(after_s=60)[ONE] == "ok"


def test_errors_that_are_counted_anew_and_are_there_again_degrade_a_card(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(ecc_uncorrected=5))
    node.look()
    assert node.health(after_s=60)[ONE] == "ok"
    node.driver.says = node_of(gpu(ecc_uncorrected=2))
    assert node.health()[ONE] != "ok"


@pytest.mark.parametrize("card", [gpu(fault="GPU is lost"), gpu(fault="GPU is lost", needs_reset=True)])
def test_a_card_that_cannot_be_used_is_lost_with_the_reason_and_watched_when_it_is_back(
    node: MadeNode, card: object
) -> None:
    node.look()
    node.driver.says = node_of(card, gpu(TWO, 1))  # type: ignore[arg-type]
    assert node.health() == {ONE: "lost: GPU is lost", TWO: "ok"}
    node.driver.says = node_of(gpu(), gpu(TWO, 1))
    assert node.health()[ONE] == CAME_BACK
    assert node.health(after_s=60)[ONE] == "ok"


def test_xid_79_is_told_as_long_as_the_card_is_away(node: MadeNode) -> None:
    node.look()
    node.xid(ONE, 79)
    node.driver.says = node_of(gpu(fault="GPU is lost"))
    words = "lost: XID 79: the card fell off the bus; drain the node and restart it"
    assert node.health()[ONE] == words
    assert node.health(after_s=10_000)[ONE] == words
    node.driver.says = node_of(gpu())
    assert node.health()[ONE] == CAME_BACK


def test_an_error_while_a_card_that_came_back_is_watched_is_told(node: MadeNode) -> None:
    node.look()
    node.driver.says = HANGS
    node.look()
    node.driver.says = node_of(gpu())
    assert node.health()[ONE] == CAME_BACK
    node.xid(ONE, 94)
    assert node.health()[ONE] == CONTAINED


def test_without_an_answer_of_the_driver_all_cards_are_lost_with_stable_words(node: MadeNode) -> None:
    node.look()
    for seconds in (2, 7):
        node.driver.says = Trouble(kind="hangs", sentence=f"no call returned for {seconds} s")
        assert set(node.health().values()) == {"lost: the NVIDIA driver does not answer"}
    node.driver.says = Trouble(kind="mismatch", sentence="library 580, driver 570")
    assert set(node.health().values()) == {"lost: library 580, driver 570"}


def test_a_driver_that_was_opened_just_now_may_take_its_time(node: MadeNode) -> None:
    node.xid(ONE, 94)
    before = node.health()
    node.driver.says = STARTS
    assert node.health() == before
    node.driver.says = HANGS
    assert set(node.health().values()) == {"lost: the NVIDIA driver does not answer"}


def test_a_slow_driver_changes_nothing_but_its_xids_count(node: MadeNode) -> None:
    before = node.health()
    node.driver.says = SLOW
    assert node.health() == before
    node.xid(ONE, 94)
    assert node.health() == {**before, ONE: CONTAINED}


def test_a_driver_that_hung_and_then_is_slow_still_has_no_cards(node: MadeNode) -> None:
    node.look()
    for node.driver.says in (HANGS, SLOW):
        assert set(node.health().values()) == {"lost: the NVIDIA driver does not answer"}


def test_a_hostile_reason_becomes_one_short_line(node: MadeNode) -> None:
    node.driver.says = node_of(gpu(fault="\x1b[2J\nno\x00 " + "x" * 9999))
    (health,) = node.health().values()
    assert health.startswith("lost: [2J no xxx")
    assert health.isprintable()
