"""Faults during a node's switch to crishim, and what must hold afterwards.

Each fault occurs when kubelet starts with crishim as its runtime, after the rollback was prepared.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Final, NamedTuple

from rig.client.manifests import a_pod
from rig.client.pods import Pod
from support.switch_stage import NODE, SwitchStage

CONTAINERD: Final = "unix:///run/containerd/containerd.sock"
_SMALL_DISKS: Final = ("/var/lib/partage/node", "/etc/kubernetes/manifests")
_numbers: Final = itertools.count()


class Fault(NamedTuple):
    strikes: str
    """A script; if it fails, kubelet does not start."""
    mended: str = "true"
    before: str = "true"


def _on_a_small_disk(folder: str) -> str:
    """Move the folder with its contents to a small tmpfs."""
    return (
        f"cp -a {folder} /opt/kept; mount -t tmpfs -o size=256k none {folder}; cp -a /opt/kept/. {folder}; "
        "rm -r /opt/kept"
    )


HANGS: Final = "a crishim that hangs"
FAULTS: Final[Mapping[str, Fault]] = {
    "a crishim that cannot start again": Fault(
        "mv /opt/partage/current/bin/partage-crishim /opt/partage/crishim.gone; "
        "systemctl kill -s KILL partage-crishim.service",
        "mv /opt/partage/crishim.gone /opt/partage/current/bin/partage-crishim",
    ),
    "no key that allocations are believed by": Fault("rm -r /etc/partage/keys.d; sleep 2"),  # crishim looks each second
    HANGS: Fault("systemctl kill -s STOP partage-crishim.service", "systemctl kill -s CONT partage-crishim.service"),
    "a kubelet that refuses its configuration": Fault("exit 1"),
    "a full disk": Fault(
        "; ".join(f"cat /dev/zero >{folder}/.full 2>/dev/null" for folder in _SMALL_DISKS) + "; true",
        "; ".join(f"umount {folder}" for folder in _SMALL_DISKS),
        "; ".join(map(_on_a_small_disk, _SMALL_DISKS)),
    ),
}


@contextmanager
def befallen(stage: SwitchStage, fault: Fault) -> Generator[None]:
    """Inject the fault inside the context, and repair it at the end."""
    stage.machine.run("sh", "-ec", fault.before)
    stage.on_start_of_kubelet(fault.strikes)
    try:
        yield
    finally:
        stage.without_fault()
        stage.machine.run("sh", "-ec", fault.mended)
        stage.put_keys()


def a_running_pod(stage: SwitchStage) -> tuple[Pod, str]:
    """A running pod, and the command line of its process."""
    number = next(_numbers)
    command = f"sleep {86400 + number}"
    wished = a_pod(f"pod-{number}", image="busybox", command=command.split(), node=NODE)
    pod = stage.rig.cluster.pods.create("team-a", wished)
    pod.wait_running()
    return pod, command


def require_containerd(stage: SwitchStage) -> None:
    """The node is ready, and kubelet starts pods through containerd."""
    stage.wait_ready()
    pod, _ = a_running_pod(stage)
    pod.delete()
    assert stage.kubelet_endpoint() == CONTAINERD
    assert stage.status().endpoint == "containerd"
