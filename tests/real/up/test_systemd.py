"""`partage up` with systemd: its units do what they should, in a real systemd that is process 1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial

import pytest

from partage_cli.installation import way_back
from partage_cli.installation.places import WAY_BACK
from partage_cli.installation.services import Systemctl
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


def test_a_way_back_that_failed_does_not_hasten_the_next_one(stage: SystemdStage) -> None:
    services = Systemctl((*stage.machine.way_in, "systemctl"))
    names = (way_back.TIMER, way_back.SERVICE)
    for after_s, seen in ((0.1, "failed"), (3600.0, "inactive")):
        stage.machine.write(f"/{WAY_BACK}", "exit 1\n")
        for name, text in way_back.units(kubelet="kubelet.service", after_s=after_s, root="/").items():
            stage.machine.write(f"{UNITS}/{name}", text)
        services.daemon_reload()
        services.enable(*names)
        services.restart(way_back.TIMER)
        until(f"the way back is {seen}", partial(why_not_in, stage, seen))
        assert (last_end(stage) == "0") == (seen == "inactive"), "the timer counts from when the service has ended"
        services.stop(*names)
        services.disable(*names)
        stage.machine.run("rm", *(f"{UNITS}/{name}" for name in names))
        services.daemon_reload()


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


def why_not_in(stage: SystemdStage, wanted: str) -> str | None:
    now = stage.systemctl("show", "--property", "ActiveState", "--value", way_back.SERVICE)
    return None if now == wanted else now


def last_end(stage: SystemdStage) -> str:
    return stage.systemctl("show", "--property", "InactiveEnterTimestampMonotonic", "--value", way_back.SERVICE)


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
