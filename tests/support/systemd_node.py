"""A node of a rig with a real systemd as PID 1, which runs containerd and kubelet as on any host.

Kubelet is set up as by kubeadm: a configuration file, and a service that reads kubeadm's flags and users' flags.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from rig.client.wait import until
from rig.machine import network
from rig.nodes import kubelet
from rig.nodes.machine import Machine, Place
from rig.nodes.node import NodeSettings, runtime
from rig.rig import CHECKOUT, Rig
from support.systemd_stage import init as systemd_init
from support.systemd_stage import wait_booted

CONFIG: Final = "/var/lib/kubelet/config.yaml"
UNITS: Final = "/etc/systemd/system"
_CONTAINERD_UNIT: Final = """\
[Service]
Environment=PATH={path}
ExecStart={argv}
KillMode=process
Delegate=yes
Restart=always
RestartSec=1s

[Install]
WantedBy=multi-user.target
"""
_KUBELET_UNIT: Final = """\
[Unit]
After=containerd.service
StartLimitIntervalSec=0

[Service]
Environment=PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart={argv} $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
Restart=always
RestartSec=1s

[Install]
WantedBy=multi-user.target
"""


def made(rig: Rig, name: str, number: int, log: Path) -> Machine:
    """Create the machine without starting it; the output of all its services goes to that log."""
    visible = (CHECKOUT, Path(sys.prefix), *rig.programs.folders)
    init = systemd_init(rig.addresses.slot, rig.folder, name, log)
    place = Place(name, rig.folder / "nodes" / name, rig.logs, rig.folder, visible, init)
    return Machine(place, rig.addresses.node(number))


def boot(rig: Rig, machine: Machine, others: Sequence[Machine] = ()) -> None:
    """Start the machine, also again with the same disks."""
    machine.start()
    network.connect(rig.addresses, machine, others, str(rig.folder))
    wait_booted(machine)
    machine.run("mount", "-t", "tmpfs", "libraries", "/usr/local/lib")  # otherwise it is the host's


def furnish(rig: Rig, machine: Machine) -> None:
    """Write the units of containerd and kubelet without starting them."""
    machine.path(UNITS).mkdir(parents=True, exist_ok=True)
    settings = rig.kubelet(machine, NodeSettings())
    machine.write(CONFIG, kubelet.config(settings))
    machine.path(kubelet.STATIC_PODS).mkdir(parents=True, exist_ok=True)
    for folder in ("/etc/cdi", "/var/run/cdi"):
        machine.path(folder).mkdir(parents=True, exist_ok=True)
    argv = " ".join(kubelet.argv(rig.programs["kubelet"], settings)).replace(kubelet.CONFIG, CONFIG)
    machine.write(f"{UNITS}/kubelet.service", _KUBELET_UNIT.format(argv=argv))
    containerd = runtime(machine, rig.programs, rig.registry).program
    text = _CONTAINERD_UNIT.format(argv=" ".join(containerd.argv), path=containerd.env["PATH"])
    machine.write(f"{UNITS}/containerd.service", text)


def serve(rig: Rig, machine: Machine) -> None:
    """Start both; returns when the node is ready."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", "containerd", "kubelet")
    name = machine.place.name
    until(f"{name} is ready", lambda: rig.cluster.nodes.why_not_ready(name))


def processes(machine: Machine, command: str) -> list[tuple[int, int]]:
    """PIDs and start times of container processes with this command."""
    found: list[tuple[int, int]] = []
    for pid in machine.run("sh", "-c", f"pgrep -x -f '{command}' || true").split():
        fields = machine.path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        found.append((int(pid), int(fields[19])))
    return found
