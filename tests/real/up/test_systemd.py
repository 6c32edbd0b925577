"""`partage up` where systemd runs: its units mean what they should, to a real systemd that is process 1."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rig.client.wait import until
from rig.rig import CHECKOUT
from support.extent import drawn
from support.systemd_stage import SystemdStage, systemd_machine

pytestmark = pytest.mark.timeout(180)

LOGS = CHECKOUT / ".cache/test/rig-logs-systemd"
SERVICES = ("simgpud", "broker", "inventory", "agent")
MENDED = tuple(name for name in SERVICES if name != "simgpud")
"""Containers lose a simulated driver that dies, as they would lose a kernel's."""
UNITS = "/etc/systemd/system"
WITHIN_S = 60


@pytest.fixture(scope="module")
def stage() -> Iterator[SystemdStage]:
    with systemd_machine(say=print, keep_logs=LOGS) as stage:
        stage.up("--simulated", "h100")
        yield stage


def test_systemds_own_checker_finds_nothing_in_the_units(stage: SystemdStage) -> None:
    files = [f"{UNITS}/partage-{name}.service" for name in SERVICES]
    stage.machine.run("systemd-analyze", "verify", *files, f"{UNITS}/partage-machine.target")
    assert stage.systemctl("is-enabled", "partage-machine.target") == "enabled"


@pytest.mark.parametrize("name", drawn("real/up: services of systemd", MENDED, 2))
def test_a_service_that_is_killed_is_started_again(stage: SystemdStage, name: str) -> None:
    before = main_pid(stage, name)
    stage.machine.run("kill", "-KILL", before)
    until(f"{name} runs again", lambda: why_not_again(stage, name, before), WITHIN_S)
    until("the machine is whole", lambda: why_not_whole(stage), WITHIN_S)


def test_the_simulated_driver_outlives_a_down(stage: SystemdStage) -> None:
    driver = main_pid(stage, "simgpud")
    done = stage.partage("down")
    assert (done.returncode, "containers go on" in done.stderr) == (0, True), done.stderr
    assert {state(stage, name) for name in MENDED} == {"inactive"}
    stage.up()
    assert main_pid(stage, "simgpud") == driver


def test_a_second_up_starts_nothing_again(stage: SystemdStage) -> None:
    before = [main_pid(stage, name) for name in SERVICES]
    stage.up()
    assert [main_pid(stage, name) for name in SERVICES] == before


def test_after_a_boot_all_is_up_and_nothing_is_left_to_do(stage: SystemdStage) -> None:
    stage.reboot()
    until("the machine is whole", lambda: why_not_whole(stage), WITHIN_S)
    before = [main_pid(stage, name) for name in SERVICES]
    stage.up()
    assert [main_pid(stage, name) for name in SERVICES] == before


def test_down_with_all_and_purge_leaves_no_unit(stage: SystemdStage) -> None:
    done = stage.partage("down", "--all", "--purge")
    assert done.returncode == 0, done.stderr + stage.told()
    assert stage.machine.run("find", UNITS, "-name", "partage*") == ""
    assert stage.systemctl("list-units", "--all", "--plain", "--no-legend", "partage-*") == ""
    stage.up("--simulated", "h100")
    assert why_not_whole(stage) is None


def main_pid(stage: SystemdStage, name: str) -> str:
    return stage.systemctl("show", "--property", "MainPID", "--value", f"partage-{name}")


def state(stage: SystemdStage, name: str) -> str:
    return stage.systemctl("show", "--property", "ActiveState", "--value", f"partage-{name}")


def why_not_again(stage: SystemdStage, name: str, before: str) -> str | None:
    now = (state(stage, name), main_pid(stage, name))
    return None if now[0] == "active" and now[1] not in {"0", before} else str(now)


def why_not_whole(stage: SystemdStage) -> str | None:
    found = json.loads(stage.partage("doctor", "-o", "json").stdout)["findings"]
    return str(wrong) if (wrong := [each for each in found if each["status"] == "wrong"]) else None
