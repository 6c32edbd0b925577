"""Whether kubelet demonstrably speaks through crishim, and the broker is there: told as it is, within seconds."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_plugins.vocabulary.places import BROKER_ALIVE
from support.advertiser_stage import AdvertiserStage
from support.crishim_stage import KEYS

pytestmark = pytest.mark.timeout(300)

SOON = ("--ready-within-s", "8")
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


@pytest.mark.parametrize("stopped", ["kubelet", "crishim"])
def test_crishim_is_in_force_only_while_kubelet_speaks_through_it(
    stage: AdvertiserStage, whole_again: None, stopped: str
) -> None:
    component = stage.node.kubelet if stopped == "kubelet" else stage.node.daemons["crishim"]
    stage.start(*SOON)
    wait_ready(stage, crishim=True)
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


def test_the_broker_is_in_force_while_it_shows_life(stage: AdvertiserStage) -> None:
    stage.start(*SOON)
    wait_ready(stage, crishim=True)
    stage.machine.write(f"/{BROKER_ALIVE}", "")
    wait_ready(stage, crishim=True, broker=True)
    wait_ready(stage, crishim=True, broker=False)  # nobody touches it any more
    stage.wait_event("BrokerAway", "no sign of life")


def test_without_crishim_nobody_is_in_force(native: AdvertiserStage) -> None:
    native.start()
    wait_ready(native, crishim=False)
