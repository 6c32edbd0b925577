"""Changing sets of cards: a driver that is loaded late, a removed card, a reboot."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.api.places import INVENTORY_FILE
from partage_simgpu.description import Card
from real.advertiser.conftest import OURS
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.rig import Rig
from support.advertiser_stage import AdvertiserStage, staged
from support.simgpu_stage import DRIVER, install_driver, simgpud


class Workshop:
    """Replaces the cards of n1, as a technician does."""

    def __init__(self, rig: Rig) -> None:
        self._machine: Machine = rig.nodes[OURS].machine
        self._driver: Component = rig.nodes[OURS].daemon(simgpud())

    def furnish(self, *cards: str | Card) -> None:
        self.empty()
        install_driver(self._machine, cards)
        self._driver.restart()

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
    """n1 without cards; the test provides them."""
    with staged(rig, OURS) as stage:
        yield stage


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
    bare.machine.run("rm", f"/{INVENTORY_FILE}")  # like everything below /run
    workshop.furnish("h100", "t4", "t4")
    bare.start()
    bare.wait_healths("ok", "ok", "ok")
