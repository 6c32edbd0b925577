"""`partage node` and a real advertiser with simulated cards: a pause keeps its promises."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from real.cli.asking import config_of, findings, partage, statuses
from rig.errors import Refused
from rig.machine.components import serving, stopped
from rig.rig import Rig
from support.advertiser_stage import CHILD, AdvertiserStage, staged
from support.simgpu_stage import DRIVER, install_driver, simgpud

NODE = "n2"


@pytest.fixture
def stage(rig: Rig) -> Iterator[AdvertiserStage]:
    """A node with two cards, and an advertiser that has found them."""
    node = rig.nodes[NODE]
    install_driver(node.machine)
    with serving(node.daemon(simgpud())), staged(rig, NODE) as stage:
        stage.start()
        stage.wait_healths("ok", "ok")
        yield stage
    node.machine.run("rm", "-rf", "--", DRIVER)


def test_after_a_pause_nobody_of_ours_holds_the_driver_and_a_resume_brings_the_cards_back(
    stage: AdvertiserStage,
) -> None:
    assert stage.processes(CHILD)
    paused = partage("node", "pause", "--reason", "driver 580", "--wait", "60", inside=stage.machine)
    assert paused.returncode == 0, paused.stderr
    assert "2 of 2 cards paused; no process of partage holds the driver" in paused.stderr
    assert not stage.processes(CHILD)
    stage.wait_healths("degraded: paused: driver 580", "degraded: paused: driver 580")
    resumed = partage("node", "resume", "--wait", "60", inside=stage.machine)
    assert resumed.returncode == 0, resumed.stderr
    stage.wait_healths("ok", "ok")


def test_an_advertiser_that_hangs_lets_no_pause_succeed(stage: AdvertiserStage) -> None:
    with stopped(stage.started[-1]):
        done = partage("node", "pause", "--wait", "1", inside=stage.machine)
    assert done.returncode == 1
    assert "still holds the driver" in done.stderr
    assert partage("node", "resume", "--wait", "60", inside=stage.machine).returncode == 0


def test_a_pause_without_an_advertiser_holds_for_the_next_one(stage: AdvertiserStage) -> None:
    stage.started[-1].kill()
    done = partage("node", "pause", "--wait", "60", inside=stage.machine)
    assert done.returncode == 0, done.stderr
    assert "no advertiser runs on this node" in done.stderr
    stage.start()
    stage.wait_healths("degraded: paused", "degraded: paused")
    assert not stage.processes(CHILD)


def test_what_an_advertiser_told_is_found_well_and_shown(rig: Rig, stage: AdvertiserStage) -> None:
    stage.wait("it has a heartbeat", lambda: _why_no_heartbeat(stage))
    config = config_of(rig.cluster)
    found = findings(stage.machine, "--kubeconfig", config, "--driver-root", DRIVER)
    here = ("driver", "driver-libraries", "driver-devices", "advertiser", "inventory", "device-plugin")
    well = (*here, "api", "annotation", "heartbeat", "heartbeat-write", "clock")
    assert statuses(found, *well) == dict.fromkeys(well, "ok")
    (node,) = json.loads(partage("nodes", "-o", "json", "--node", NODE, "--kubeconfig", config).stdout)["nodes"]
    assert ([card["health"] for card in node["cards"]], node["heartbeat"]["stale"]) == (["ok", "ok"], False)


def _why_no_heartbeat(stage: AdvertiserStage) -> str | None:
    """The first heartbeat comes a moment after the annotation that it vouches for."""
    try:
        stage.lease()
    except Refused as error:
        return str(error)
    return None
