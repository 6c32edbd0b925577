"""Whether kubelet demonstrably speaks through crishim, and the broker is there: told as it is, within seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.vocabulary.places import BROKER_ALIVE
from support.advertiser_stage import AdvertiserStage
from support.crishim_stage import KEYS

pytestmark = pytest.mark.timeout(300)

SOON = ("--ready-within-s", "7")
"""kubelet asks every 5 s."""


@pytest.fixture
def whole_again(stage: AdvertiserStage) -> Iterator[None]:
    """What a test stopped runs again afterwards."""
    yield
    for component in (*stage.node.daemons.values(), stage.node.kubelet):
        if not component.is_running:
            component.start()
            component.wait_ready()
    stage.rig.cluster.nodes.wait_ready(stage.name)


def wait_ready(stage: AdvertiserStage, *, crishim: bool, broker: bool = False) -> None:
    def why_not() -> str | None:
        told = stage.told()
        found = (told.ready.crishim, told.ready.broker) if told else None
        return None if found == (crishim, broker) else f"crishim and broker are {found}"

    stage.wait(f"crishim is {crishim} and the broker {broker}", why_not)


def test_daemons_are_in_force_only_while_they_show_life(stage: AdvertiserStage, whole_again: None) -> None:
    stage.start(*SOON)
    wait_ready(stage, crishim=True)
    stage.machine.write(f"/{BROKER_ALIVE}", "")
    wait_ready(stage, crishim=True, broker=True)
    wait_ready(stage, crishim=True, broker=False)  # nothing touches the file again
    stage.wait_event("BrokerAway", "no sign of life")
    for component in (stage.node.kubelet, stage.node.daemons["crishim"]):
        component.kill()
        wait_ready(stage, crishim=False)
        stage.wait_event("CrishimAway", "kubelet does not speak through crishim")
        component.start()
        component.wait_ready()
        wait_ready(stage, crishim=True)
    stage.wait_event("CrishimInForce", "kubelet speaks through crishim")
    assert stage.told_text() == stage.written_text()


def test_a_crishim_that_honours_no_allocation_is_told_with_the_cause(stage: AdvertiserStage) -> None:
    stage.start(*SOON)
    wait_ready(stage, crishim=True)
    keys = stage.machine.path(KEYS)
    away = keys.rename(keys.with_name("keys.away"))
    try:
        wait_ready(stage, crishim=False)
        stage.wait_event("CrishimKeys", "no key verifies allocations")
    finally:
        away.rename(keys)
    wait_ready(stage, crishim=True)
