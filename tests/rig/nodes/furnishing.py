"""From a bare machine to a node: configuration is written, components are made, nothing is started."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from ipaddress import IPv4Address

from rig import images
from rig.programs import Programs
from rig.machine.components import Component
from rig.nodes import cni, containerd, kubelet
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, Node, NodeSettings, inside
from rig.registry import Registry


@dataclass(frozen=True)
class Supplies:
    """What the node is made of, by whoever knows it: programs, images and the papers of its kubelet."""

    programs: Programs
    registry: Registry
    kubelet: kubelet.Kubelet


def furnish(machine: Machine, supplies: Supplies, settings: NodeSettings) -> Node:
    """The node with its components, none of them running."""
    machine.write(kubelet.CONFIG, kubelet.config(supplies.kubelet))
    machine.path(kubelet.STATIC_PODS).mkdir(parents=True, exist_ok=True)
    for folder in ("/run/partage", "/etc/partage", "/etc/cdi", "/var/run/cdi"):
        machine.path(folder).mkdir(parents=True, exist_ok=True)
    for path, text in settings.files.items():
        machine.write(path, text)
    return Node(
        machine=machine,
        containerd=runtime(machine, supplies.programs, supplies.registry),
        daemons={daemon.name: inside(machine, daemon) for daemon in settings.daemons},
        kubelet=inside(machine, _kubelet(supplies)),
    )


def runtime(machine: Machine, programs: Programs, registry: Registry) -> Component:
    """A machine's containerd, configured and not running; it fetches every image from that registry."""
    settings = containerd.Containerd(runc=programs["runc"], cni_plugins=programs.cni, pause=images.SANDBOX)
    machine.write(containerd.CONFIG, containerd.config(settings))
    machine.write(cni.CONFIG, cni.network(machine.addresses.pods))
    registry.serve(machine.path(containerd.CERTS))
    program = programs["containerd"]
    path = f"{program.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # the shim is found by PATH
    argv = (str(program), "--config", containerd.CONFIG)
    daemon = Daemon("containerd", argv, lambda machine: why_no_answer(machine, containerd.SOCKET), {"PATH": path})
    return inside(machine, daemon)


def _kubelet(supplies: Supplies) -> Daemon:
    argv = kubelet.argv(supplies.programs["kubelet"], supplies.kubelet)
    return Daemon("kubelet", argv, lambda _: _why_not_listening(supplies.kubelet.ip))


def why_no_answer(machine: Machine, path: str) -> str | None:
    """Whether somebody accepts on a unix socket of the node."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(machine.path(path)))
        except OSError as no:
            return f"{path}: {no.strerror}"
    return None


def _why_not_listening(ip: IPv4Address) -> str | None:
    with socket.socket() as probe:
        probe.settimeout(1)
        try:
            probe.connect((str(ip), kubelet.PORT))
        except OSError as no:
            return f"{ip}:{kubelet.PORT}: {no}"
    return None
