"""A node: a machine with containerd, kubelet and the daemons between them.

The start order is containerd, the daemons in the given order, kubelet: kubelet exits at once if its runtime endpoint
does not answer, and crishim is such an endpoint. `furnish` writes the configuration and creates the components; it
starts nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Final

from rig import images
from rig.machine.components import Component, Program
from rig.nodes import containerd, kubelet
from rig.nodes.machine import Machine
from rig.programs import Programs
from rig.registry import Registry

ENDPOINT: Final = f"unix://{containerd.SOCKET}"


@dataclass(frozen=True)
class Daemon:
    """One of our programs on the node, started before kubelet. `why_not_ready` gets the node's machine."""

    name: str
    argv: tuple[str, ...]
    why_not_ready: Callable[[Machine], str | None]
    env: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True)
class NodeSettings:
    """Settings that may differ from node to node."""

    runtime_endpoint: str = ENDPOINT
    daemons: tuple[Daemon, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """By path in the node; written before any daemon starts."""
    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    kubelet_config: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True)
class Node:
    """One node of a rig, with its components."""

    machine: Machine
    containerd: Component
    daemons: Mapping[str, Component]
    kubelet: Component
    _others: list[Component] = field(default_factory=list[Component])

    @property
    def name(self) -> str:
        return self.machine.place.name

    @property
    def components(self) -> list[Component]:
        """All regular components, in start order."""
        return [self.machine.component, self.containerd, *self.daemons.values(), self.kubelet]

    @property
    def others(self) -> list[Component]:
        """Components created by `daemon`; its caller may have stopped them."""
        return list(self._others)

    def newest(self, daemon: str) -> Component:
        """The component that was created last for a daemon of this name."""
        return [each for each in (*self.components, *self.others) if each.name == f"{self.name}-{daemon}"][-1]

    def start(self) -> None:
        """Start the components; returns when kubelet runs, which is before the node is Ready."""
        for component in (self.containerd, *self.daemons.values()):
            component.start()
            component.wait_ready()
        self.kubelet.start()

    def stop(self) -> None:
        """Stop kubelet first, so that it observes no failures; then everything at once, including containers."""
        self.kubelet.kill()
        self.machine.stop()
        for component in (self.containerd, *self.daemons.values(), *self._others):
            component.kill()

    def daemon(self, daemon: Daemon) -> Component:
        """Create another component in the node, which the caller starts and stops; it ends with the node."""
        self._others.append(inside(self.machine, daemon))
        return self._others[-1]

    def run(self, daemon: Daemon) -> Component:
        """Create and start another component in the node; returns when it serves."""
        component = self.daemon(daemon)
        component.start()
        component.wait_ready()
        return component


def inside(machine: Machine, daemon: Daemon) -> Component:
    program = Program(
        name=f"{machine.place.name}-{daemon.name}",
        argv=daemon.argv,
        log=machine.place.logs / f"{machine.place.name}-{daemon.name}.log",
        run_folder=machine.place.run_folder,
        env=daemon.env,
        inside=machine.way_in,
    )
    return Component(program, lambda: daemon.why_not_ready(machine))


@dataclass(frozen=True)
class Supplies:
    """Parts of a node: programs, images, and its kubelet's identity."""

    programs: Programs
    registry: Registry
    kubelet: kubelet.Kubelet


def furnish(machine: Machine, supplies: Supplies, settings: NodeSettings) -> Node:
    """A node with its components, none of them running."""
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
    """A machine's containerd, configured but not running; it pulls every image from that registry."""
    program = programs["containerd"]
    settings = containerd.Containerd(
        major=containerd.major_of(program), runc=programs["runc"], cni_plugins=programs.cni, pause=images.SANDBOX
    )
    machine.write(containerd.CONFIG, containerd.config(settings))
    machine.write(containerd.NETWORK, containerd.network(machine.addresses.pods))
    registry.serve(machine.path(containerd.CERTS))
    path = f"{program.parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"  # for the shim
    argv = (str(program), "--config", containerd.CONFIG)
    daemon = Daemon("containerd", argv, lambda machine: why_no_answer(machine, containerd.SOCKET), {"PATH": path})
    return inside(machine, daemon)


def _kubelet(supplies: Supplies) -> Daemon:
    argv = kubelet.argv(supplies.programs["kubelet"], supplies.kubelet)
    return Daemon("kubelet", argv, lambda _: _why_not_listening(supplies.kubelet.ip))


def why_no_answer(machine: Machine, path: str) -> str | None:
    """Why nobody accepts on a unix socket of the node, or None."""
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
