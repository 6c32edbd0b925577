"""A node is switched to crishim and back under running containers; under any fault it ends up ready.

Each fault strikes when kubelet starts with crishim as its runtime, which is after the rollback was prepared.
"""

from __future__ import annotations

import pytest

from partage_cli.installation.places import TURN
from rig.client.wait import until
from rig.patience import patience_s
from support.extent import drawn
from support.switch_faults import CONTAINERD, FAULTS, HANGS, a_running_pod, befallen, require_containerd
from support.switch_stage import BUNDLE, EXTRA_ARGS, SwitchStage
from support.systemd_node import CONFIG

INSTALL_DIES_AFTER = (
    "journal.done look",
    "journal.done unpack",
    "journal.done units",
    "journal.take_version",
)
SWITCH_DIES_AFTER = (
    "journal.done save",
    "journal.done arm",
    "journal.done endpoint",
    "turn.confirm",
    "journal.done confirm",
)
"""Each run gets this far, the next one further."""
DROP_INS = "/etc/kubernetes/kubelet.conf.d"
TOLD_BY = {
    "a drop-in": (f"--config-dir={DROP_INS}", f"{DROP_INS}/zz-partage.conf"),
    "a flag": (f"--container-runtime-endpoint={CONTAINERD}", EXTRA_ARGS),
}
"""kubelet's argument, and the file that is changed with it; kubelet's configuration file is the usual way."""


@pytest.mark.parametrize("fault", drawn("real/installation: faults", [name for name in FAULTS if name != HANGS], 1))
def test_a_node_that_a_fault_befalls_is_ready_with_its_runtime_again(stage: SwitchStage, fault: str) -> None:
    _, command = a_running_pod(stage)
    processes = stage.processes(command)
    with befallen(stage, FAULTS[fault]):
        done = stage.node("switch-on", "--within", "5")
        assert done.returncode == 1, done.stderr + stage.told()
        assert "as before" in done.stderr
        require_containerd(stage)
        assert stage.processes(command) == processes
        assert len(processes) == 1


def test_a_command_that_is_killed_beside_a_crishim_that_hangs_is_turned_back_by_the_timer(stage: SwitchStage) -> None:
    _, command = a_running_pod(stage)
    processes = stage.processes(command)
    hangs = FAULTS[HANGS]
    with befallen(stage, hangs._replace(strikes=f"{hangs.strikes}; touch /etc/struck")):
        switching = stage.started("switch-on", "--within", "20")  # on a busy machine kubelet is not restarted in less
        until_struck(stage)
        stage.kill(switching)
        turned = stage.machine.path(f"/{TURN}") / "turned-back"
        until("the timer has turned it back", lambda: None if turned.exists() else "not yet")
        require_containerd(stage)
        assert stage.processes(command) == processes
        assert len(processes) == 1


def test_a_reboot_in_the_middle_gives_kubelet_its_runtime_back_before_it_starts(stage: SwitchStage) -> None:
    stage.on_start_of_kubelet("touch /etc/struck")
    switching = stage.started("switch-on")
    until_struck(stage)
    stage.reboot()
    assert switching.wait(patience_s()) != 0
    stage.without_fault()
    require_containerd(stage)
    assert "went back" in stage.status().why


def test_a_switch_leaves_containers_alone_and_is_taken_back_without_a_trace(stage: SwitchStage) -> None:
    """This includes the case that an earlier run was rolled back, as above."""
    before = stage.machine.path(CONFIG).read_bytes()
    pod, command = a_running_pod(stage)
    processes = stage.processes(command)
    done = stage.node("switch-on")
    assert done.returncode == 0, done.stderr + stage.told()
    now = stage.status()
    assert (now.in_force, now.endpoint, now.switch, now.why) == (True, "crishim", "confirmed", "")
    through, _ = a_running_pod(stage)
    assert through.exec("true") == ""
    require_whole_again(stage, "/etc/systemd/system/partage-crishim.socket")
    again = stage.node("switch-on")
    assert (again.returncode, "already" in again.stderr) == (0, True)
    done = stage.node("switch-off")
    assert done.returncode == 0, done.stderr + stage.told()
    require_containerd(stage)
    assert stage.processes(command) == processes
    assert len(processes) == 1
    assert pod.refresh()["status"]["containerStatuses"][0]["restartCount"] == 0
    assert stage.machine.path(CONFIG).read_bytes() == before
    assert stage.machine.run("find", "/etc/systemd/system", "-name", "partage-switch-back*") == ""
    find = ("find", "/var/lib/kubelet", "/etc/kubernetes", "-name", "*partage*")
    until("kubelet has cleaned up after the canary", lambda: stage.machine.run(*find) or None)


def require_whole_again(stage: SwitchStage, path: str) -> None:
    """A deleted file of the installation is reported missing, and is restored beside kubelet."""
    assert list(stage.status().altered) == []
    kubelet = stage.systemctl("show", "--property=MainPID", "kubelet")
    stage.machine.path(path).unlink()
    assert list(stage.status().altered) == [path]
    stage.install()
    assert list(stage.status().altered) == []
    assert stage.systemctl("show", "--property=MainPID", "kubelet") == kubelet
    until("the node is in force", lambda: stage.status().why or None)


@pytest.mark.timeout(1200)
def test_a_command_that_is_killed_after_any_step_leaves_a_node_that_works_and_the_next_one_finishes(
    stage: SwitchStage,
) -> None:
    done = stage.node("uninstall")
    assert done.returncode == 0, done.stderr + stage.told()
    _, command = a_running_pod(stage)
    processes = stage.processes(command)
    for point in drawn("real/installation: kills of an installation", INSTALL_DIES_AFTER, 1):
        stage.killed_after(point, "install", "--tree", BUNDLE)
        stage.wait_ready(f"the node is ready after {point}")
        assert stage.processes(command) == processes, point
    stage.install()
    for point in drawn("real/installation: kills of a switch", SWITCH_DIES_AFTER, 1):
        stage.killed_after(point, "switch-on")
        stage.wait_ready(f"the node is ready after {point}")
        a_running_pod(stage)[0].delete()
        assert stage.processes(command) == processes, point
    done = stage.node("switch-on")
    assert done.returncode == 0, done.stderr + stage.told()
    assert (stage.status().in_force, stage.status().switch) == (True, "confirmed")
    done = stage.node("switch-off")
    assert done.returncode == 0, done.stderr + stage.told()
    require_containerd(stage)
    assert stage.processes(command) == processes
    assert len(processes) == 1


@pytest.mark.parametrize("way", drawn("real/installation: files", list(TOLD_BY), 1))
def test_the_file_that_tells_kubelet_its_runtime_is_the_one_that_is_changed_and_put_back(
    stage: SwitchStage, way: str
) -> None:
    argument, file = TOLD_BY[way]
    changed = stage.machine.path(file)
    a_running_pod(stage)[0].delete()  # without a sandbox image no canary could run
    with stage.kubelet_with(argument):
        before = changed.read_text() if changed.exists() else None
        done = stage.node("switch-on")
        assert done.returncode == 0, done.stderr + stage.told()
        assert (stage.status().in_force, stage.status().endpoint) == (True, "crishim")
        assert "/run/partage/crishim.sock" in changed.read_text()
        assert stage.kubelet_endpoint() == CONTAINERD
        a_running_pod(stage)[0].delete()
        done = stage.node("switch-off")
        assert done.returncode == 0, done.stderr + stage.told()
        require_containerd(stage)
        assert (changed.read_text() if changed.exists() else None) == before


def until_struck(stage: SwitchStage) -> None:
    struck = stage.machine.path("/etc/struck")
    until("kubelet starts anew", lambda: None if struck.exists() else "not yet")
    struck.unlink()
