"""Whether kubelet demonstrably speaks through crishim and whether the broker is up are reported within seconds."""

from __future__ import annotations

from partage_plugins.api.keys import KEYS as TOLD
from partage_plugins.api.places import BROKER_ALIVE
from rig.machine.components import away
from support.advertiser_stage import AdvertiserStage
from support.crishim_stage import KEYS

SOON = ("--ready-within-s", "7")
"""kubelet asks every 5 s."""


def wait_ready(stage: AdvertiserStage, *, crishim: bool, broker: bool = False) -> None:
    def why_not() -> str | None:
        told = stage.told()
        found = (told.ready.crishim, told.ready.broker) if told else None
        return None if found == (crishim, broker) else f"crishim and broker are {found}"

    stage.wait(f"crishim is {crishim} and the broker {broker}", why_not)


def test_daemons_are_in_force_only_while_they_show_life(stage: AdvertiserStage) -> None:
    stage.start(*SOON)
    wait_ready(stage, crishim=True)
    stage.machine.write(f"/{BROKER_ALIVE}", "")
    wait_ready(stage, crishim=True, broker=True)
    wait_ready(stage, crishim=True, broker=False)  # the file is not touched again
    stage.wait_event("BrokerAway", "no sign of life")
    for component in (stage.node.kubelet, stage.node.daemons["crishim"]):
        with away(component):
            wait_ready(stage, crishim=False)
            stage.wait_event("CrishimAway", "kubelet does not speak through crishim")
        wait_ready(stage, crishim=True)
    stage.wait_event("CrishimInForce", "kubelet speaks through crishim")
    assert stage.told_text() == stage.written_text()
    stage.rig.cluster.nodes.wait_ready(stage.name)


def wait_trusted(stage: AdvertiserStage, keys: str) -> None:
    """Wait until the heartbeat lists these trusted keys; heartbeats never pause meanwhile."""

    def why_not() -> str | None:
        told = stage.lease()["metadata"]["annotations"][TOLD]
        return None if told == keys else f"the heartbeat says {told!r}"

    stage.wait(f"the heartbeat says {keys!r}", why_not)


def test_a_crishim_that_honours_no_allocation_is_told_with_the_cause_and_trusts_no_key(stage: AdvertiserStage) -> None:
    stage.start(*SOON, "--heartbeat-s", "1")
    wait_ready(stage, crishim=True)
    keys = stage.machine.path(KEYS)
    (key,) = (file.stem for file in keys.iterdir())
    stage.wait_figure('partage_advertiser_heartbeats_total{outcome="done"}', 1)
    wait_trusted(stage, key)
    moved = keys.rename(keys.with_name("keys.away"))
    try:
        wait_ready(stage, crishim=False)
        stage.wait_event("CrishimKeys", "no key verifies allocations")
        wait_trusted(stage, "")
    finally:
        moved.rename(keys)
    wait_ready(stage, crishim=True)
    wait_trusted(stage, key)
