"""The machine of a node is its own: what happens in it stays in it, and ends with it."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from rig.machine.addresses import Addresses
from rig.machine.cleanup import clean, processes_of
from rig.machine.slots import Slot, claimed
from rig.nodes.machine import Machine, Place
from rig.nodes.node import Daemon, inside


@pytest.fixture
def slot() -> Iterator[Slot]:
    with claimed(clean) as slot:
        yield slot


@pytest.fixture
def machine(slot: Slot) -> Iterator[Machine]:
    machine = Machine(place(slot, "n1"), Addresses(slot.number).node(1))
    machine.start()
    yield machine
    machine.stop()


def place(slot: Slot, name: str) -> Place:
    return Place(name, slot.folder / "nodes" / name, slot.folder / "logs", slot.folder, ())


def test_what_is_written_where_programs_always_write_does_not_reach_the_host(machine: Machine) -> None:
    for path in ("/etc/cdi/x", "/run/partage/x", "/var/run/cdi/x", "/var/lib/kubelet/x", "/opt/x", "/var/log/pods/x"):
        machine.run("sh", "-c", f"mkdir -p $(dirname {path}) && echo own > {path}")
        assert machine.run("cat", path) == "own\n"
        assert not Path(path).exists()


def test_what_the_host_has_is_there_and_can_be_changed_for_the_node_alone(machine: Machine) -> None:
    before = Path("/etc/passwd").read_text()
    assert machine.run("cat", "/etc/passwd") == before
    machine.run("sh", "-c", "rm /etc/passwd && echo changed > /etc/hostname")
    assert Path("/etc/passwd").read_text() == before
    assert Path("/etc/hostname").read_text() != "changed\n"


@pytest.mark.parametrize("path", ["etc/partage", "run/partage"])
def test_a_partage_of_the_host_is_hidden_also_one_that_comes_later(machine: Machine, path: str) -> None:
    hidden = (machine.place.own / "written" / path).lstat()
    assert (stat.S_ISCHR(hidden.st_mode), hidden.st_rdev) == (True, 0)  # by which an overlay covers what is below
    assert not machine.path(f"/{path}").exists()


def test_kubelet_may_set_what_it_sets_and_the_host_does_not_feel_it(machine: Machine) -> None:
    before = Path("/proc/sys/kernel/panic").read_text()
    machine.run("sh", "-c", "echo 77 > /proc/sys/kernel/panic")
    assert machine.run("cat", "/proc/sys/kernel/panic") == "77\n"
    assert Path("/proc/sys/kernel/panic").read_text() == before


def test_a_link_of_the_node_leads_to_the_nodes_files_and_not_to_the_hosts(machine: Machine) -> None:
    assert Path("/var/run").is_symlink()
    machine.write("/var/run/partage-link/x", "by a link")
    assert machine.run("cat", "/run/partage-link/x") == "by a link"
    assert not Path("/run/partage-link").exists()
    machine.run("sh", "-c", "mkdir -p /etc/up/a && ln -s ../../../run /etc/up/a/link")
    assert machine.path("/etc/up/a/link/partage-link/x").read_text() == "by a link"


def test_everything_in_it_ends_with_it_even_what_was_left_running(machine: Machine, slot: Slot) -> None:
    machine.run("sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 </dev/null &")
    daemon = inside(machine, Daemon("sleep", ("sleep", "1000"), lambda _: None))
    daemon.start()
    assert Path(f"/proc/{daemon.pid}/ns/pid").readlink() != Path("/proc/self/ns/pid").readlink()
    pid = daemon.pid
    machine.stop()
    daemon.kill()
    assert not Path(f"/proc/{pid}").exists()
    assert processes_of(slot.folder) == []
