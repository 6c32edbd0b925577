"""Nodes of other shapes: MIG instances, many cards of many kinds, a card that is taken out, a reboot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from partage_plugins.vocabulary import GPU
from partage_plugins.vocabulary.places import INVENTORY_FILE
from partage_simgpu.description import Card, card_uuid, mig_uuid
from real.advertiser.conftest import OURS, staged
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.rig import Rig
from support.advertiser_stage import AdvertiserStage
from support.simgpu import card
from support.simgpu_stage import DRIVER, install_driver, simgpud

MOST_TEXT_BYTES = 16 << 10
"""An object's annotations may have 256 KiB in all, and every scheduler has every node in its memory."""
SLICED = card("h100", mig=("1g.10gb", "1g.10gb", "3g.40gb"))
SIXTEEN = ("h200",) * 8 + ("a100-80g",) * 4 + ("l4", "t4", "rtx-4090", "h100")


class Workshop:
    """Gives n1 other cards, as a person with a screwdriver does."""

    def __init__(self, rig: Rig) -> None:
        self._machine: Machine = rig.nodes[OURS].machine
        self._driver: Component = rig.nodes[OURS].daemon(simgpud())

    def furnish(self, *cards: str | Card) -> None:
        self.empty()
        install_driver(self._machine, cards)
        self._driver.start()
        self._driver.wait_ready()

    def empty(self) -> None:
        self._driver.kill()
        self._machine.run("rm", "-rf", DRIVER)


@pytest.fixture
def workshop(rig: Rig) -> Iterator[Workshop]:
    workshop = Workshop(rig)
    yield workshop
    workshop.empty()
    install_driver(rig.nodes[OURS].machine)


@pytest.fixture
def bare(rig: Rig, workshop: Workshop) -> Iterator[AdvertiserStage]:
    """n1, whose cards are the test's business."""
    with staged(rig, OURS) as stage:
        yield stage


def uuids(cards: Sequence[object]) -> list[str]:
    return [card_uuid("rig", ordinal) for ordinal in range(len(cards))]


def test_mig_instances_are_cards_with_a_parent_and_lost_with_it(bare: AdvertiserStage, workshop: Workshop) -> None:
    workshop.furnish(SLICED, "l4")
    bare.start()
    bare.wait_healths("ok", "ok", "ok", "ok")
    instances = [each for each in bare.cards() if each.parent]
    assert {each.parent for each in instances} == {card_uuid("rig", 0)}
    assert sorted(str(each.mig_profile) for each in instances) == ["1g.10gb", "1g.10gb", "3g.40gb"]
    assert len({each.id for each in instances}) == 3
    assert {each.id for each in instances} <= {mig_uuid("rig", 0, number) for number in range(16)}
    assert len({each.memory_bytes for each in instances}) == 2
    (whole,) = [each for each in bare.cards() if not each.parent]
    assert (whole.id, whole.mig_profile) == (card_uuid("rig", 1), None)
    bare.tell_driver("lose 0")
    bare.wait_healths("lost", "lost", "lost", "ok")


def test_sixteen_cards_of_six_kinds_are_told_in_a_short_text(bare: AdvertiserStage, workshop: Workshop) -> None:
    workshop.furnish(*SIXTEEN)
    bare.start()
    bare.wait_healths(*("ok",) * len(SIXTEEN))
    assert [each.id for each in bare.cards()] == uuids(SIXTEEN)
    assert len({each.model for each in bare.cards()}) == 6
    assert len(bare.told_text() or "") < MOST_TEXT_BYTES
    told = bare.told()
    part = told.part(GPU) if told else None
    assert part is not None
    assert [len(row) for row in part.links] == [len(SIXTEEN)] * len(SIXTEEN)
    assert part.links[0][1] > 0
    assert part.links[0][12] == 0


def test_cards_come_with_a_driver_and_one_that_is_taken_out_is_lost_until_a_reboot(
    bare: AdvertiserStage, workshop: Workshop
) -> None:
    workshop.empty()
    component = bare.start("--look-every-s", "1")
    bare.wait("an inventory is told", lambda: None if bare.told() else "none is")
    assert bare.cards() == ()
    workshop.furnish("h100", "l4")
    bare.wait_healths("ok", "ok")
    workshop.furnish("h100")
    bare.wait_healths("ok", "lost")
    because = str(bare.cards()[1].lost_because)
    assert "was it taken out?" in because
    component.kill()
    bare.machine.run("rm", f"/{INVENTORY_FILE}")  # as everything below /run
    workshop.furnish("h100", "t4", "t4")
    bare.start()
    bare.wait_healths("ok", "ok", "ok")
