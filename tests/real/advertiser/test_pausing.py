"""While the driver is to be left alone, nothing of ours holds it: its module could be unloaded."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from partage_advertiser.signs import LABEL
from partage_plugins.vocabulary.places import PAUSE_FOLDER
from real.advertiser.auditing import Audit
from support.advertiser_stage import CHILD, MODULE, AdvertiserStage

pytestmark = pytest.mark.timeout(300)

BY_HAND = f"/{PAUSE_FOLDER}/by-hand"


def label(stage: AdvertiserStage, state: str) -> None:
    """As NVIDIA's operator does."""
    stage.rig.cluster.kubectl.run("label", "--overwrite", "node", stage.name, f"{LABEL}={state}")


def held(stage: AdvertiserStage) -> list[str]:
    """What our processes have of the driver, mapped or open."""
    processes = [*stage.processes(MODULE), *stage.processes(CHILD)]
    return [line for process in processes for line in (*_mapped(process), *_open(process)) if "nvidia" in line]


def wait_let_go(stage: AdvertiserStage, why: str) -> None:
    stage.wait_healths(f"degraded: paused: {why}", f"degraded: paused: {why}")
    stage.wait("nothing holds the driver", lambda: f"{held(stage)}" if held(stage) else None)


def test_while_the_operator_upgrades_the_driver_nothing_of_ours_holds_it(stage: AdvertiserStage, audit: Audit) -> None:
    stage.start()
    stage.wait_healths("ok", "ok")
    assert held(stage)
    for state in ("drain-required", "pod-restart-required"):
        label(stage, state)
        wait_let_go(stage, "the GPU operator upgrades the driver")
    label(stage, "upgrade-done")
    stage.wait_healths("ok", "ok")
    assert held(stage)
    assert stage.told_text() == stage.written_text()
    assert audit.writes()["patch", "nodes"] == 1 + 2  # paused, and as before


def test_a_label_that_is_removed_ends_the_pause(stage: AdvertiserStage) -> None:
    stage.start()
    label(stage, "drain-required")
    wait_let_go(stage, "the GPU operator")
    stage.rig.cluster.kubectl.run("label", "node", stage.name, f"{LABEL}-")
    stage.wait_healths("ok", "ok")


def test_a_pause_by_hand_lets_go_until_its_file_is_gone(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    stage.machine.write(BY_HAND, "a new cable\n")
    wait_let_go(stage, "a new cable")
    stage.wait_event("CardDegraded", "takes no new pods: paused: a new cable")
    stage.machine.path(BY_HAND).unlink()
    stage.wait_healths("ok", "ok")


def test_a_pause_outlives_the_advertiser_and_the_driver_is_not_touched(stage: AdvertiserStage) -> None:
    component = stage.start()
    label(stage, "drain-required")
    wait_let_go(stage, "the GPU operator")
    component.kill()
    stage.tell_driver("nvml hang")  # whoever asked would hang
    stage.start()
    wait_let_go(stage, "the GPU operator")
    assert not stage.processes(CHILD)


def test_a_driver_that_hangs_is_let_go_as_well(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.tell_driver("nvml hang")
    stage.wait_healths("lost", "lost")
    stage.machine.write(BY_HAND, "a reset\n")
    stage.wait("nothing holds the driver", lambda: f"{held(stage)}" if held(stage) else None)


def _mapped(process: Path) -> list[str]:
    with contextlib.suppress(OSError):  # it ended meanwhile
        return (process / "maps").read_text().splitlines()
    return []


def _open(process: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [f"{process}: {entry.readlink()}" for entry in (process / "fd").iterdir()]
    return []
