"""`partage up` and `partage down` without systemd: started processes, those that outlive them, and leftovers."""

from __future__ import annotations

import difflib
import json
import subprocess
from collections.abc import Iterator

import pytest

from partage_cli.machine.places import MACHINE_FILE
from partage_plugins.api import GPU
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.codecs import decode_inventory
from rig.client.wait import until
from rig.rig import CHECKOUT
from support.extent import drawn
from support.machine_stage import MachineStage, bare_machine, machine_up

pytestmark = pytest.mark.timeout(180)

LOGS_KEPT = CHECKOUT / ".cache/test/rig-logs-up"
SERVICES = {
    "simgpud": "bin/simgpud",
    "broker": "-m partage_isolation",
    "inventory": "-m partage_advertiser",
    "agent": "-m partage_oci",
}
"""Services by a part of their command lines."""
DAEMONS = [name for name in SERVICES if name != "simgpud"]
UP_WITHIN_S = 30
KUBELET = "/opt/kubelet"


@pytest.fixture(scope="module")
def stage() -> Iterator[MachineStage]:
    with machine_up(2, keep_logs=LOGS_KEPT) as made:
        yield made


def pids(stage: MachineStage, name: str) -> set[str]:
    argv = (*stage.machine.way_in, "pgrep", "-f", "--", SERVICES[name])
    return set(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split())


def test_the_cards_are_known_and_doctor_finds_nothing_wrong(stage: MachineStage) -> None:
    part = decode_inventory(stage.machine.path(f"/{INVENTORY_FILE}").read_bytes(), (GPU,)).part(GPU)
    assert part is not None
    assert len(part.cards) == 2
    assert "SIMULATED CARDS" in stage.said
    found = json.loads(stage.partage_done("doctor", "-o", "json").stdout)["findings"]
    assert not [each for each in found if each["status"] == "wrong"]
    assert {each["check"]: each["status"] for each in found}["agent"] == "ok"


def test_a_second_up_says_what_is_there_and_changes_nothing(stage: MachineStage) -> None:
    before = stage.machine.path(f"/{MACHINE_FILE}").read_text()
    done = stage.partage_done("up")
    assert (done.returncode, "up already" in done.stderr) == (0, True)
    assert stage.machine.path(f"/{MACHINE_FILE}").read_text() == before
    other = stage.partage_done("up", "--simulated", "l4")
    assert other.returncode == 1
    assert "`partage down`, then `partage up`" in other.stderr


@pytest.mark.parametrize("name", drawn("real/up: services", DAEMONS, 2))
def test_a_service_that_is_killed_comes_back(stage: MachineStage, name: str) -> None:
    before = pids(stage, name)
    stage.machine.run("sh", "-c", f"kill -KILL {' '.join(before)}; true")  # a child may exit before its turn
    until(f"{name} runs again", lambda: None if pids(stage, name) - before else "it does not", UP_WITHIN_S)
    until(f"{name} was told of", lambda: None if f"{name} was ended by SIGKILL" in stage.said else "it was not")
    until("the machine is whole", lambda: why_not_whole(stage), UP_WITHIN_S)


def test_the_simulated_driver_outlives_down_and_a_killed_up(stage: MachineStage) -> None:
    driver = pids(stage, "simgpud")
    done = stage.partage_done("down")
    assert (done.returncode, "containers go on" in done.stderr) == (0, True), done.stderr
    assert not stage.up.is_running
    assert not alive(stage)
    stage.start()
    stage.up.kill()
    until("all services end with it", lambda: str(found) if (found := alive(stage)) else None, UP_WITHIN_S)
    stage.start()
    assert pids(stage, "simgpud") == driver


def test_down_with_all_and_purge_leaves_the_machine_as_it_was() -> None:
    with bare_machine(keep_logs=LOGS_KEPT) as stage:
        before = seen(stage)
        stage.start()
        assert seen(stage) != before
        done = stage.partage_done("down", "--all", "--purge")
        assert done.returncode == 0, done.stderr
        assert changes(before, seen(stage)) == []
        again = stage.partage_done("down", "--all", "--purge")
        assert (again.returncode, again.stderr) == (0, "nothing is up here\n")


def test_an_up_that_was_killed_half_way_is_taken_back_and_begun_again() -> None:
    with bare_machine(keep_logs=LOGS_KEPT) as stage:
        before = seen(stage)
        stage.up.start()
        file = stage.machine.path(f"/{MACHINE_FILE}")
        until("it has decided", lambda: None if file.exists() else "it has not")
        stage.up.kill()
        assert stage.partage_done("down", "--purge").returncode == 0
        # Work that the killed one had begun ends by itself, when it notices that nobody listens any more.
        until("nothing is left", lambda: "\n".join(changes(before, seen(stage))) or None)
        stage.machine.run("cp", "/bin/sleep", KUBELET)
        stage.machine.run("sh", "-c", f"{KUBELET} 60 >/dev/null 2>&1 &")
        done = stage.partage_done("up")
        assert (done.returncode, "a kubelet runs here, process" in done.stderr) == (1, True)


def why_not_whole(stage: MachineStage) -> str | None:
    """Components that do not answer."""
    if not decode_inventory(stage.machine.path(f"/{INVENTORY_FILE}").read_bytes(), (GPU,)).ready.broker:
        return "the inventory says that the broker is not in force"
    found = json.loads(stage.partage_done("doctor", "-o", "json").stdout)["findings"]
    return str(wrong) if (wrong := [each for each in found if each["status"] == "wrong"]) else None


def alive(stage: MachineStage) -> set[str]:
    return {name for name in DAEMONS if pids(stage, name)}


def changes(before: list[str], after: list[str]) -> list[str]:
    return list(difflib.unified_diff(before, after, n=0, lineterm=""))


def seen(stage: MachineStage) -> list[str]:
    """The machine's files, mounts, network devices and processes."""
    return stage.machine.run("sh", "-c", _LOOK).splitlines()


_LOOK = """
find /etc /run /var/lib /var/log /usr/local/lib -xdev -path '*/partage-rig*' -prune -o -print | sort
cut -d' ' -f5 /proc/self/mountinfo | sort
ls /sys/class/net
ps -e -o comm= | grep -v -e '^ps$' -e '^sh$' -e '^sort$' -e '^grep$' | sort
"""
