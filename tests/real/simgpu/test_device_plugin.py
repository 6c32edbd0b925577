"""NVIDIA's device plugin offers simulated cards to the real kubelet, and pods that ask for one get it."""

from __future__ import annotations

import re

from real.simgpu.conftest import NODE, wait_allocatable
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.wait import until
from rig.machine.components import Component
from rig.rig import Rig
from support.simgpu_stage import CARDS, RESOURCE, UUIDS, tell

TEAM = "team-a"
MIB = 1 << 20


def card_pod(rig: Rig, name: str, *arguments: str) -> Pod:
    """A pod that asks for one card and prints it."""
    command = ("/usr/bin/cards", *arguments)
    return rig.cluster.pods.create(TEAM, a_pod(name, image="cards", command=command, limits={RESOURCE: "1"}))


def cards_in(logs: str) -> list[str]:
    return re.findall(r"^nvml (\S+)", logs, flags=re.MULTILINE)


def wait_said(pod: Pod) -> None:
    """Wait until it has printed its card."""
    pod.wait_running()
    until(f"{pod.name} has said what it has", lambda: None if "nvml" in pod.logs() else f"it said {pod.logs()!r}")


def test_a_pod_sees_one_card_by_nvml_and_the_same_by_cuda(rig: Rig, plugin: Component) -> None:
    wait_allocatable(rig, len(CARDS))
    pod = card_pod(rig, "one-card", "64")
    wait_said(pod)
    cuda, nvml = sorted(pod.logs().splitlines())
    assert cards_in(nvml)[0] in UUIDS
    assert nvml.endswith(cuda.removeprefix("cuda "))
    used = int(re.findall(r"used=(\d+)", nvml)[0])
    assert used > 64 * MIB
    line = next(line for line in tell(rig.nodes[NODE].machine, "status").splitlines() if cards_in(nvml)[0] in line)
    assert int(re.findall(r" used=(\d+)", line)[0]) > 64 * MIB
    pod.delete_and_wait()
    freed = "the memory of a pod that ended is free"
    until(freed, lambda: None if " used=0 " in tell(rig.nodes[NODE].machine, "status") else "it is not")
    assert re.findall(r" used=(\d+)", tell(rig.nodes[NODE].machine, "status")) == ["0"] * len(CARDS)


def test_an_xid_takes_its_card_from_what_is_allocatable_unless_a_program_caused_it(rig: Rig, plugin: Component) -> None:
    wait_allocatable(rig, len(CARDS))

    def why_not() -> str | None:
        """The plugin notices only events after it began to listen."""
        for command in ("xid 0 31", "xid 1 48"):
            tell(rig.nodes[NODE].machine, command)
        found = rig.cluster.nodes.allocatable(NODE, RESOURCE)
        return None if found == len(CARDS) - 1 else f"the node has {found}"

    until("one card is allocatable", why_not)
    pod = card_pod(rig, "after-the-faults")
    pod.wait_succeeded()
    assert cards_in(pod.logs()) == [UUIDS[0]]
    pod.delete_and_wait()
