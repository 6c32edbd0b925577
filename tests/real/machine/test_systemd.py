"""`partage up` where systemd runs: its units mean what they should, to a real systemd that is process 1."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_cli.machine.wire.messages import MANAGER_SOCKET
from rig import images
from rig.client.wait import until
from rig.rig import CHECKOUT
from support.extent import drawn
from support.manager_lines import Gone, Manager
from support.systemd_stage import SystemdStage, systemd_machine

pytestmark = pytest.mark.timeout(180)

LOGS = CHECKOUT / ".cache/test/rig-logs-systemd"
SERVICES = ("simgpud", "containerd", "broker", "crishim", "inventory", "manager")
MENDED = tuple(name for name in SERVICES if name != "simgpud")
"""Containers lose a simulated driver that dies, as they would lose a kernel's."""
UNITS = "/etc/systemd/system"
WITHIN_S = 60
KEPT, ENDING = "86401", "86402"
"""The seconds that containers sleep, by which they are found."""
_SLEEPS = "trap exit TERM; sleep {} & wait"


@pytest.fixture(scope="module")
def stage() -> Iterator[SystemdStage]:
    with systemd_machine(say=print, keep_logs=LOGS) as stage:
        stage.registry.push(images.busybox(), "busybox")
        stage.up("--simulated", "h100")
        started(stage, "kept", KEPT, "--restart", "always")
        started(stage, "ending", ENDING)
        yield stage


def started(stage: SystemdStage, name: str, sleeps: str, *words: str) -> None:
    given = ("--share", "300", "--memory", "1Gi", "--name", name, *words)
    done = stage.partage("run", "-d", *given, "busybox", "--", "sh", "-c", _SLEEPS.format(sleeps))
    assert done.returncode == 0, done.stderr + stage.told()


def test_systemds_own_checker_finds_nothing_in_the_units(stage: SystemdStage) -> None:
    files = [f"{UNITS}/partage-{name}.service" for name in SERVICES]
    stage.machine.run("systemd-analyze", "verify", *files, f"{UNITS}/partage-machine.target")
    assert stage.systemctl("is-enabled", "partage-machine.target") == "enabled"


@pytest.mark.parametrize("name", drawn("real/machine: services of systemd", MENDED, 2))
def test_a_service_that_is_killed_is_started_again_and_containers_go_on(stage: SystemdStage, name: str) -> None:
    before, containers = main_pid(stage, name), (running(stage, KEPT), running(stage, ENDING))
    stage.machine.run("kill", "-KILL", before)
    until(f"{name} runs again", lambda: why_not_again(stage, name, before), WITHIN_S)
    until("pods are listed", lambda: why_not_phase(stage, "kept", "running"), WITHIN_S)
    assert (running(stage, KEPT), running(stage, ENDING)) == containers
    assert all(containers)


def test_containers_outlive_a_down_and_are_taken_over_by_the_next_up(stage: SystemdStage) -> None:
    before, driver = running(stage, KEPT), main_pid(stage, "simgpud")
    done = stage.partage("down")
    assert (done.returncode, "containers go on" in done.stderr) == (0, True), done.stderr
    assert {state(stage, name) for name in MENDED} == {"inactive"}
    assert running(stage, KEPT) == before
    stage.up()
    assert (running(stage, KEPT), main_pid(stage, "simgpud")) == (before, driver)
    until("pods are listed", lambda: why_not_phase(stage, "kept", "running"), WITHIN_S)


def test_a_second_up_starts_nothing_again(stage: SystemdStage) -> None:
    before = [main_pid(stage, name) for name in SERVICES]
    stage.up()
    assert [main_pid(stage, name) for name in SERVICES] == before


def test_after_a_boot_all_is_up_and_containers_with_a_policy_are_started_again(stage: SystemdStage) -> None:
    stage.reboot()
    until("the pod is started again", lambda: why_not_phase(stage, "kept", "running"), WITHIN_S)
    assert running(stage, KEPT)
    assert why_not_phase(stage, "ending", "exited") is None
    assert not running(stage, ENDING)


def test_down_with_all_and_purge_leaves_no_unit(stage: SystemdStage) -> None:
    done = stage.partage("down", "--all", "--purge")
    assert done.returncode == 0, done.stderr + stage.told()
    assert stage.machine.run("find", UNITS, "-name", "partage*") == ""
    assert stage.systemctl("list-units", "--all", "--plain", "--no-legend", "partage-*") == ""
    assert not running(stage, KEPT)


def running(stage: SystemdStage, sleeps: str) -> list[str]:
    """Processes of containers that sleep so long."""
    return stage.machine.run("sh", "-c", f"pgrep -x -f 'sleep {sleeps}' || true").split()


def main_pid(stage: SystemdStage, name: str) -> str:
    return stage.systemctl("show", "--property", "MainPID", "--value", f"partage-{name}")


def state(stage: SystemdStage, name: str) -> str:
    return stage.systemctl("show", "--property", "ActiveState", "--value", f"partage-{name}")


def why_not_again(stage: SystemdStage, name: str, before: str) -> str | None:
    now = (state(stage, name), main_pid(stage, name))
    return None if now[0] == "active" and now[1] not in {"0", before} else str(now)


def why_not_phase(stage: SystemdStage, pod: str, phase: str) -> str | None:
    try:
        answer = Manager(stage.machine.path(f"/{MANAGER_SOCKET}")).ask({"do": "ps", "names": [pod], "all": True})
    except (Gone, OSError) as error:
        return str(error)
    if answer["is"] == "no":
        return str(answer["why"])
    return None if answer["pods"][0]["phase"] == phase else str(answer["pods"][0])
