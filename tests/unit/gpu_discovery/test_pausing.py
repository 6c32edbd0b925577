"""During a pause the driver is not accessed, and the inventory says why."""

from __future__ import annotations

import pytest
from msgspec import structs

from partage_plugins.api import GPU, CardHealth, HealthCause, Inventory
from partage_plugins.api.places import INVENTORY_FILE, PAUSE_FOLDER
from partage_plugins.codecs import encode_inventory
from unit.gpu_discovery.making import HANGS, NO_LIBRARY, ONE, STARTS, TWO, MadeNode, gpu, node_of

WHY = "degraded: paused: driver upgrade"


def test_while_a_file_is_there_the_driver_is_let_go_and_every_card_says_why(node: MadeNode) -> None:
    node.look()
    was_held = node.driver.is_held
    file = node.pause("driver upgrade")
    assert node.health() == {ONE: WHY, TWO: WHY}
    assert was_held
    assert not node.driver.is_held
    file.unlink()
    assert node.health() == {ONE: "ok", TWO: "ok"}


def test_a_pause_holds_over_a_new_start_and_cards_are_watched_after_it(node: MadeNode) -> None:
    node.look()
    file = node.pause("driver upgrade")
    before = node.look()
    node.begin()
    assert node.look() == before
    file.unlink()
    assert node.health()[ONE] == "degraded: came back, being watched"
    assert node.health(after_s=60)[ONE] == "ok"


def test_a_new_start_knows_a_pause_by_its_code_and_not_by_its_words(node: MadeNode) -> None:
    node.look()
    last = node.found
    assert last is not None
    alike = CardHealth.degraded(HealthCause.OTHER, "paused: by a power cap")
    told = structs.replace(last, cards=tuple(card.being(alike) for card in last.cards))
    node.write(INVENTORY_FILE, encode_inventory(Inventory(kinds={GPU.name: told})))
    node.begin()
    assert node.health()[ONE] == str(alike)


def test_a_pause_that_ended_while_nobody_looked_is_over(node: MadeNode) -> None:
    node.look()
    file = node.pause("driver upgrade")
    node.look()
    file.unlink()
    node.begin()
    assert node.health()[ONE] == "degraded: came back, being watched"


def test_a_lost_card_is_paused_and_lost_again(node: MadeNode) -> None:
    node.look()
    node.driver.says = node_of(gpu())
    node.look()
    file = node.pause("driver upgrade")
    assert node.health() == {ONE: WHY, TWO: WHY}
    file.unlink()
    assert node.health()[TWO].startswith("lost: ")


def test_what_needs_a_reset_may_have_had_it_while_paused(node: MadeNode) -> None:
    node.xid(ONE, 48)
    node.look()
    file = node.pause("reset of card 0")
    node.look(after_s=1000)
    file.unlink()
    assert node.health()[ONE] == "degraded: came back, being watched"
    assert node.health(after_s=60)[ONE] == "ok"


def test_an_error_right_before_a_pause_is_not_forgotten(node: MadeNode) -> None:
    node.look()
    node.xid(ONE, 94)
    file = node.pause("driver upgrade")
    node.look(after_s=1)
    file.unlink()
    assert node.health() == {ONE: "degraded: came back, being watched", TWO: "ok"}


def test_after_a_pause_it_is_told_until_the_driver_has_found_its_cards(node: MadeNode) -> None:
    node.look()
    file = node.pause("driver upgrade")
    node.look()
    file.unlink()
    node.driver.says = STARTS
    assert node.health() == {ONE: WHY, TWO: WHY}
    node.driver.says = NO_LIBRARY
    assert node.health()[ONE] == f"lost: {NO_LIBRARY.sentence}"


def test_a_hanging_driver_can_be_let_go(node: MadeNode) -> None:
    node.look()
    node.driver.says = HANGS
    node.look()
    node.pause("driver upgrade")
    assert node.health() == {ONE: WHY, TWO: WHY}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("why\nmore\n", "why"),
        ("", "by-hand"),
        ("\x1b[2J\x00", "[2J"),
        ("x" * 5000, "x" * 247 + "…"),
        ("\udcff", "\N{REPLACEMENT CHARACTER}" * 3),
    ],
)
def test_the_reason_is_one_printable_line(node: MadeNode, content: str, told: str) -> None:
    node.look()
    node.write(f"{PAUSE_FOLDER}/by-hand", content.encode(errors="surrogatepass"))
    assert node.health()[ONE] == f"degraded: paused: {told}"


def test_of_several_pauses_the_first_by_name_is_told_and_each_must_end(node: MadeNode) -> None:
    node.look()
    by_operator, by_hand = node.pause("upgrade", "driver-upgrade"), node.pause("cleaning", "by-hand")
    assert node.health()[ONE] == "degraded: paused: cleaning"
    by_hand.unlink()
    assert node.health()[ONE] == "degraded: paused: upgrade"
    by_operator.unlink()
    assert node.health()[ONE] == "ok"


def test_a_folder_that_cannot_be_read_changes_nothing(node: MadeNode) -> None:
    node.look()
    file = node.pause("upgrade")
    node.look()
    file.unlink()
    folder = file.parent
    folder.rmdir()
    folder.write_text("not a folder")
    assert node.health()[ONE] == "degraded: paused: upgrade"


def test_files_that_are_being_written_do_not_count(node: MadeNode) -> None:
    node.pause("half", ".by-hand.123")
    assert node.health()[ONE] == "ok"


def test_measuring_does_not_touch_a_driver_that_was_let_go(node: MadeNode) -> None:
    node.look()
    node.pause("upgrade")
    node.look()
    names = {gauge.name for gauge in node.discovery.samples()}
    assert names == {"gpu_health", "gpu_pool"}
