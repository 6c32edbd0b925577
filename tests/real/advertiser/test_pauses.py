"""While the driver is paused, none of our processes holds it: its module could be unloaded."""

from __future__ import annotations

import contextlib
from pathlib import Path

from partage_advertiser.liveness_files import LABEL, MIG_LABEL
from partage_gpu.driver_root import OPERATORS
from partage_plugins.api.places import PAUSE_FOLDER
from support.advertiser_stage import CHILD, DEVICE_PLUGIN_LABEL, MODULE, AdvertiserStage
from support.audit import Audit

BY_HAND = f"/{PAUSE_FOLDER}/by-hand"
UPGRADE = "the GPU operator upgrades the driver"


def label(stage: AdvertiserStage, state: str, key: str = LABEL) -> None:
    """Set the label as NVIDIA's operator does."""
    stage.rig.cluster.kubectl.run("label", "--overwrite", "node", stage.name, f"{key}={state}")


def held(stage: AdvertiserStage) -> list[str]:
    """Driver files that our processes have mapped or open."""
    processes = [*stage.processes(MODULE), *stage.processes(CHILD)]
    return [line for process in processes for line in (*_mapped(process), *_open(process)) if "nvidia" in line]


def wait_let_go(stage: AdvertiserStage, why: str) -> None:
    stage.wait_healths(f"degraded: paused: {why}", f"degraded: paused: {why}")
    stage.wait("nothing holds the driver", lambda: f"{held(stage)}" if held(stage) else None)


def test_while_the_operator_upgrades_the_driver_nothing_of_ours_holds_it(stage: AdvertiserStage, audit: Audit) -> None:
    component = stage.start()
    stage.wait_healths("ok", "ok")
    assert held(stage)
    for state in ("drain-required", "pod-restart-required"):
        label(stage, state)
        wait_let_go(stage, UPGRADE)
    component.kill()
    stage.tell_driver("nvml hang")  # a call from us would hang
    stage.start()
    wait_let_go(stage, UPGRADE)
    assert not stage.processes(CHILD)
    stage.tell_driver("nvml resume")
    label(stage, "upgrade-done")
    stage.wait_healths("ok", "ok")
    assert held(stage)
    assert stage.told_text() == stage.written_text()
    assert audit.writes()["patch", "nodes"] == 1 + 3  # paused, watched after the kill, and as before


def test_the_operators_own_driver_is_found_and_let_go_for_all_that_its_labels_announce(stage: AdvertiserStage) -> None:
    stage.start(env={"PARTAGE_DRIVER_ROOT": "/"})
    stage.wait_healths("ok", "ok")
    assert any(OPERATORS in line for line in held(stage))
    label(stage, "pending", MIG_LABEL)
    wait_let_go(stage, "the MIG manager makes other instances")
    label(stage, "paused-for-driver-upgrade", DEVICE_PLUGIN_LABEL)
    label(stage, "success", MIG_LABEL)
    wait_let_go(stage, "the GPU operator keeps its clients stopped: paused-for-driver-upgrade")
    label(stage, "true", DEVICE_PLUGIN_LABEL)
    stage.wait_healths("ok", "ok")
    assert held(stage)


def test_a_pause_by_hand_lets_go_until_its_file_is_gone(stage: AdvertiserStage) -> None:
    stage.start("--look-every-s", "1")
    stage.wait_healths("ok", "ok")
    stage.machine.write(BY_HAND, "a new cable\n")
    wait_let_go(stage, "a new cable")
    stage.wait_event("CardDegraded", "takes no new pods: paused: a new cable")
    stage.machine.path(BY_HAND).unlink()
    stage.wait_healths("ok", "ok")
    stage.tell_driver("nvml hang")
    stage.wait_healths("lost", "lost")
    stage.machine.write(BY_HAND, "a reset\n")
    stage.wait("nothing holds the driver", lambda: f"{held(stage)}" if held(stage) else None)


def _mapped(process: Path) -> list[str]:
    with contextlib.suppress(OSError):  # it exited meanwhile
        return (process / "maps").read_text().splitlines()
    return []


def _open(process: Path) -> list[str]:
    with contextlib.suppress(OSError):
        return [f"{process}: {entry.readlink()}" for entry in (process / "fd").iterdir()]
    return []
