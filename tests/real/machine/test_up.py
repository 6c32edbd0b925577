"""`partage up` and `partage down` with Debian's containerd: what they make, what outlives them, what is left."""

from __future__ import annotations

import difflib
import json
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from partage_base.keyring import KeyFolders, load_signing_key
from partage_cli.machine.places import LOGS, MACHINE_FILE
from partage_plugins.codecs import decode_inventory, encode_allocation, sign
from partage_plugins.vocabulary import GPU, Allocation, ContainerName, GpuGrant, NodeName, PodUid
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from partage_plugins.vocabulary.places import INVENTORY_FILE
from rig.client.wait import until
from rig.errors import ComponentFailed
from rig.rig import CHECKOUT
from support.extent import drawn
from support.isolation_stage import IMAGE, SERVING, image
from support.machine_stage import MachineStage, bare_machine, machine_up

pytestmark = pytest.mark.timeout(180)

LOGS_KEPT = CHECKOUT / ".cache/test/rig-logs-up"
SERVICES = {
    "simgpud": "bin/simgpud",
    "containerd": "containerd --config",
    "broker": "-m partage_isolation",
    "crishim": "-m partage_crishim",
    "inventory": "-m partage_advertiser",
    "manager": "-m partage_cli.machine.manager",
}
"""By what their command lines hold."""
UP_WITHIN_S = 30
SANDBOX, CONTAINER, KUBELET = (f"/opt/{name}" for name in ("sandbox.json", "container.json", "kubelet"))


@dataclass(frozen=True)
class Holder:
    """A container with 30 % and 4 GiB of the first card, which takes memory as it is told."""

    stage: MachineStage
    id: str

    def asked(self, words: str) -> str:
        return self.stage.crictl("exec", self.id, SERVING[0], "ask", words).strip()


@pytest.fixture(scope="module")
def stage() -> Iterator[MachineStage]:
    with machine_up(2, say=print, keep_logs=LOGS_KEPT) as made:
        made.registry.push(image(), IMAGE)
        yield made


@pytest.fixture(scope="module")
def holder(stage: MachineStage) -> Holder:
    return started(stage)


def started(stage: MachineStage) -> Holder:
    """By hand, as the manager does it."""
    machine, uid = stage.machine, str(uuid.uuid4())
    part = decode_inventory(machine.path(f"/{INVENTORY_FILE}").read_bytes(), (GPU,)).part(GPU)
    assert part is not None
    grant = GpuGrant(card=part.cards[0].id, share_milli=300, limit_milli=1000, memory_bytes=4 << 30)
    node = NodeName(machine.run("hostname").strip())
    given = Allocation(gen=1, pod=PodUid(uid), node=node, containers={ContainerName("main"): {GPU.name: (grant,)}})
    text = encode_allocation(given)
    signature = sign(text, load_signing_key(KeyFolders.at_root(machine.path("/")).private).private)
    sandbox = {
        "metadata": {"name": "holder", "namespace": "default", "uid": uid, "attempt": 0},
        "labels": {
            "io.kubernetes.pod.name": "holder",
            "io.kubernetes.pod.namespace": "default",
            "io.kubernetes.pod.uid": uid,
        },
        "annotations": {ALLOCATION: text, SIGNATURE: signature},
        "log_directory": f"/{LOGS}/holder",
        "linux": {},
    }
    container = {
        "metadata": {"name": "main", "attempt": 0},
        "image": {"image": f"docker.io/library/{IMAGE}:latest"},
        "command": list(SERVING),
        "labels": {"io.kubernetes.container.name": "main"},
        "log_path": "main.log",
        "linux": {},
    }
    machine.path(f"/{LOGS}/holder").mkdir(parents=True, exist_ok=True)
    machine.write(SANDBOX, json.dumps(sandbox))
    machine.write(CONTAINER, json.dumps(container))
    stage.crictl("pull", f"docker.io/library/{IMAGE}:latest")
    made = stage.crictl("runp", SANDBOX).strip()
    id_ = stage.crictl("create", made, CONTAINER, SANDBOX).strip()
    stage.crictl("start", id_)
    return Holder(stage, id_)


def pids(stage: MachineStage, name: str) -> set[str]:
    argv = (*stage.machine.way_in, "pgrep", "-f", "--", SERVICES[name])
    return set(subprocess.run(argv, capture_output=True, text=True, check=False).stdout.split())


def test_a_container_gets_its_part_of_a_simulated_card_and_no_more(holder: Holder) -> None:
    assert holder.asked("take 100") == "took 100"
    assert holder.asked("view").split()[0] == f"total={4 << 30}"
    assert holder.asked("take 5000").startswith("cuMemAlloc")  # and not what the card has
    assert "SIMULATED CARDS" in holder.stage.said


def test_a_second_up_says_what_is_there_and_changes_nothing(stage: MachineStage) -> None:
    before = stage.machine.path(f"/{MACHINE_FILE}").read_text()
    done = stage.partage_done("up")
    assert (done.returncode, "up already" in done.stderr) == (0, True)
    assert stage.machine.path(f"/{MACHINE_FILE}").read_text() == before
    other = stage.partage_done("up", "--simulated", "l4")
    assert other.returncode == 1
    assert "`partage down`, then `partage up`" in other.stderr


@pytest.mark.parametrize("name", drawn("real/machine: services", [name for name in SERVICES if name != "simgpud"], 2))
def test_a_service_that_is_killed_comes_back_and_the_container_goes_on(
    stage: MachineStage, holder: Holder, name: str
) -> None:
    before = pids(stage, name)
    stage.machine.run("sh", "-c", f"kill -KILL {' '.join(before)}; true")  # a child of its own may go before its turn
    until(f"{name} runs again", lambda: None if pids(stage, name) - before else "it does not", UP_WITHIN_S)
    until(f"{name} was told of", lambda: None if f"{name} was ended by SIGKILL" in stage.said else "it was not")
    until("the machine is whole", lambda: why_not_whole(stage), UP_WITHIN_S)
    assert holder.asked("view").split()[0] == f"total={4 << 30}"


def test_a_container_outlives_down_and_a_killed_up_and_is_taken_over_again(stage: MachineStage, holder: Holder) -> None:
    before = holder.asked("view")
    driver = pids(stage, "simgpud")
    done = stage.partage_done("down")
    assert (done.returncode, "containers go on" in done.stderr) == (0, True), done.stderr
    assert not stage.up.is_running
    assert not pids(stage, "containerd")
    stage.start()
    assert holder.asked("view") == before
    stage.up.kill()
    until("all services end with it", lambda: str(found) if (found := alive(stage)) else None, UP_WITHIN_S)
    stage.start()
    assert holder.asked("view") == before
    assert pids(stage, "simgpud") == driver


def test_nothing_is_purged_under_a_container(stage: MachineStage, holder: Holder) -> None:
    done = stage.partage_done("down", "--purge")
    assert done.returncode == 1
    assert "containers are here that --purge would take away: holder; add --all" in done.stderr
    stage.start()
    assert holder.asked("view")


def test_doctor_misses_no_kubelet_on_such_a_machine(stage: MachineStage) -> None:
    found = json.loads(stage.partage_done("doctor", "-o", "json").stdout)["findings"]
    assert not [each for each in found if each["status"] == "wrong"]


def test_down_with_all_and_purge_leaves_the_machine_as_it_was() -> None:
    with bare_machine(say=print, keep_logs=LOGS_KEPT) as stage:
        before = seen(stage)
        stage.registry.push(image(), IMAGE)
        stage.start()
        started(stage)
        assert seen(stage) != before
        done = stage.partage_done("down", "--all", "--purge")
        assert done.returncode == 0, done.stderr
        assert "holder is ended and removed" in done.stderr
        assert changes(before, seen(stage)) == []
        again = stage.partage_done("down", "--all", "--purge")
        assert (again.returncode, again.stderr) == (0, "nothing is up here\n")


def test_an_up_that_was_killed_half_way_is_taken_back_and_begun_again() -> None:
    with bare_machine(say=print, keep_logs=LOGS_KEPT) as stage:
        before = seen(stage)
        stage.up.start()
        file = stage.machine.path(f"/{MACHINE_FILE}")
        until("it has decided", lambda: None if file.exists() else "it has not")
        stage.up.kill()
        assert stage.partage_done("down", "--purge").returncode == 0
        assert changes(before, seen(stage)) == []
        stage.machine.run("cp", "/bin/sleep", KUBELET)
        stage.machine.run("sh", "-c", f"{KUBELET} 60 >/dev/null 2>&1 &")
        done = stage.partage_done("up")
        assert (done.returncode, "a kubelet runs here, process" in done.stderr) == (1, True)


def why_not_whole(stage: MachineStage) -> str | None:
    """What does not answer."""
    read = decode_inventory(stage.machine.path(f"/{INVENTORY_FILE}").read_bytes(), (GPU,))
    if not (read.ready.broker and read.ready.crishim):
        return "the inventory says that not all are in force"
    try:
        stage.crictl("version")
        stage.partage("ps")
    except ComponentFailed as error:
        return str(error)
    return None


def alive(stage: MachineStage) -> set[str]:
    return {name for name in SERVICES if name != "simgpud" and pids(stage, name)}


def changes(before: list[str], after: list[str]) -> list[str]:
    return list(difflib.unified_diff(before, after, n=0, lineterm=""))


def seen(stage: MachineStage) -> list[str]:
    """What is on the machine: files, mounts, devices of the network, rules for packets, processes."""
    listed = stage.machine.run("sh", "-c", _LOOK)
    return listed.splitlines()


_LOOK = """
find /etc /run /var/lib /var/log /usr/local/lib -xdev -path '*/partage-rig*' -prune -o -print | sort
cut -d' ' -f5 /proc/self/mountinfo | sort
ls /sys/class/net
iptables -t nat -S; iptables -S
ps -e -o comm= | grep -v -e '^ps$' -e '^sh$' -e '^sort$' -e '^grep$' | sort
"""
