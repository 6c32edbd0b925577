"""Containers without a grant. Where a node has no cards, crishim is not there: not one byte of theirs is changed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from partage_plugins.vocabulary.keys import ALLOCATION
from real.crishim.recording import Said, calls
from rig.client.manifests import a_container
from rig.client.pods import Pod
from rig.client.wait import until
from rig.machine.components import Component
from rig.nodes.node import Daemon, why_no_answer
from support.crishim_stage import INVENTORY, PROGRAMS, SOCKET, Stage, crishim, inventory, public_file

BEHIND, BACK = "/run/partage/behind.sock", "/run/partage/back.sock"
RUNTIME = "/run/containerd/containerd.sock"
RECORDS = "/run/partage/records"
CHANGING = {
    *("RunPodSandbox", "CreateContainer", "StartContainer", "StopContainer", "RemoveContainer", "StopPodSandbox"),
    *("RemovePodSandbox", "UpdateContainerResources", "ExecSync", "Exec", "PullImage"),
}
"""crishim itself only ever asks, so these are kubelet's."""


def relay(listen: str, to: str, name: str) -> Daemon:
    argv = (sys.executable, "-P", str(PROGRAMS / "relaying.py"), listen, to, f"{RECORDS}/{name}")
    return Daemon(f"relay-{name}", argv, lambda machine: why_no_answer(machine, listen))


class Recorded:
    """A crishim between two recorders."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def said(self, name: str) -> list[Said]:
        """Everything until now, on one side of crishim."""
        folder, found = self._stage.machine.path(f"{RECORDS}/{name}"), list[Said]()
        for asked in folder.glob("*.asked"):
            found += calls(asked.read_bytes(), asked.with_suffix(".answered").read_bytes())
        return found


@pytest.fixture
def recorded(stage: Stage) -> Iterator[Recorded]:
    """Kubelet, a recorder, crishim with a plugin that misbehaves, a recorder, containerd."""
    machine = stage.machine
    env = {"PARTAGE_PLUGINS_BLOCK": ""}
    daemon = crishim(90, "--listen", BEHIND, "--runtime", BACK, "--plugin-memory-bytes", str(256 << 20), env=env)
    parts = [
        stage.node.daemon(each)
        for each in (
            relay(BACK, RUNTIME, "back"),
            replace(daemon, name="crishim-behind", why_not_ready=lambda machine: why_no_answer(machine, BEHIND)),
            relay(SOCKET, BEHIND, "front"),
        )
    ]
    try:
        for part in parts:
            part.start()
            part.wait_ready()
        _wait_gone(stage.crishim)
        yield Recorded(stage)
    finally:
        stage.start_another()
        for part in reversed(parts):
            part.kill()
        machine.run("rm", "-rf", RECORDS)


def _wait_gone(component: Component) -> None:
    """It finds its socket replaced, and ends by itself."""
    component.stop(within_s=20)


def without_keys_and_inventory(stage: Stage) -> Callable[[], None]:
    path, content = public_file(stage.key)
    stage.machine.path(path).unlink()
    stage.machine.path(INVENTORY).unlink()

    def back() -> None:
        stage.write(path, content)
        stage.write(INVENTORY, inventory(cards=False))

    return back


def with_a_plugin_that_ends_its_process(stage: Stage) -> Callable[[], None]:
    pod = stage.pod_with({"main": {"rogue": [{}]}})

    def told() -> None:
        assert stage.refused(pod).startswith("plugin rogue: partage_adjust: ")

    return told


TROUBLES = (without_keys_and_inventory, with_a_plugin_that_ends_its_process)


def plain_pods(stage: Stage) -> list[Pod]:
    """Of every shape: many variables, odd texts, volumes, several containers, probes, one that asks for all cards."""
    many = {f"V{n}": "ü\n\t'\"" * 40 for n in range(200)}
    probe = {"exec": {"command": ["true"]}, "periodSeconds": 1}
    volume = {"volumeMounts": [{"name": "own", "mountPath": "/run/partage"}]}
    all_cards = {"NVIDIA_VISIBLE_DEVICES": "all", "NVIDIA_MIG_CONFIG_DEVICES": "all"}
    two = [a_container(name, image="busybox", command=["sleep", "600"]) for name in ("main", "side")]
    return [
        stage.idle_pod("plain", env=many, annotations={"nvidia.cdi.k8s.io/main": "nvidia.com/gpu=all"}),
        stage.idle_pod("plain", more=volume, spec={"volumes": [{"name": "own", "emptyDir": {}}]}),
        stage.idle_pod("plain", containers=two),
        stage.idle_pod("plain", env=all_cards, more={"livenessProbe": probe}),
    ]


def plain(said: list[Said]) -> Counter[Said]:
    """What changes something and is no pod's that claims an allocation."""
    return Counter(
        each
        for each in said
        if each.method in CHANGING and (each.method != "CreateContainer" or ALLOCATION.encode() not in each.request)
    )


def difference(recorded: Recorded) -> str | None:
    """What one side heard and the other did not; a call whose answer is on its way is heard by one for a moment."""
    front, back = plain(recorded.said("front")), plain(recorded.said("back"))
    found = [(each.method, each.request[:200]) for each in ((front - back) + (back - front)).elements()]
    return str(found[:3]) if found else None


@pytest.mark.timeout(180)
def test_not_a_byte_is_changed_whatever_is_missing_or_broken(stage: Stage, recorded: Recorded) -> None:
    stage.write(INVENTORY, inventory(cards=False))
    pods = list[Pod]()
    for trouble in TROUBLES:
        settle = trouble(stage)
        mine = plain_pods(stage)
        for pod in mine:
            pod.wait_running()
        settle()
        pods += mine
    until("both sides of crishim have heard the same", lambda: difference(recorded))
    created = [each for each in plain(recorded.said("back")) if each.method == "CreateContainer"]
    assert len(created) == 5 * len(TROUBLES)
    assert all(any(pod.uid.encode() in each.request for each in created) for pod in pods)
