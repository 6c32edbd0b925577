"""A whole rig: a slot of the machine, a control plane, a registry with images, and nodes.

    with running(RigSettings(nodes={"n1": NodeSettings(), "n2": NodeSettings()}), say=print) as rig:
        ...

Parts are started in parallel, and waited for when another one needs them. At the end everything is killed at once and
cleaned up; if this process is killed, the kernel and the next rig do the same.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from rig import images
from rig.client.cluster import Cluster
from rig.client.wait import until
from rig.control.plane import ControlPlane
from rig.control.settings import ControlSettings
from rig.errors import RigError
from rig.machine import cgroups, network, slots
from rig.machine.addresses import SERVICES, Addresses
from rig.machine.cleanup import clean
from rig.machine.components import Component
from rig.nodes.kubelet import Kubelet
from rig.nodes.machine import Machine, Place, require_fit
from rig.nodes.node import Node, NodeSettings, Supplies, furnish
from rig.programs import Programs, ensure
from rig.registry import Registry

Say = Callable[[str], None]
CHECKOUT: Final = Path(__file__).parents[2]
IMAGES: Final = {images.SANDBOX: images.pause, "busybox": images.busybox, "glibc": images.glibc, "musl": images.musl}
"""Images in every rig's registry, by the names that pods use."""
TWO_NODES: Final = {"n1": NodeSettings(), "n2": NodeSettings()}


@dataclass(frozen=True)
class RigSettings:
    nodes: Mapping[str, NodeSettings] = field(default_factory=lambda: dict(TWO_NODES))
    control: ControlSettings = field(default_factory=ControlSettings)
    releases: tuple[str, ...] = ()
    """Releases of programs instead of the defaults: `kubernetes@1.34.4`."""


class Rig:
    def __init__(self, slot: slots.Slot, programs: Programs, settings: RigSettings) -> None:
        self.folder = slot.folder
        self.addresses = Addresses(slot.number)
        self.programs = programs
        self.settings = settings
        self.control = ControlPlane(self.addresses, programs, slot.folder, settings.control)
        self.registry = Registry(str(self.addresses.host))
        self._registry_component = self.registry.component(programs["docker-registry"], slot.folder)
        self.cluster = Cluster(self.control)
        self.nodes: dict[str, Node] = {}
        self._machines: dict[str, Machine] = {}

    @property
    def logs(self) -> Path:
        return self.folder / "logs"

    @property
    def components(self) -> list[Component]:
        of_nodes = [component for node in self.nodes.values() for component in node.components]
        return [self._registry_component, *self.control.components, *of_nodes]

    def tails(self) -> str:
        """The end of every component's log, to diagnose a failure."""
        return "\n".join(component.tail() for component in self.components)

    def start(self) -> None:
        """Start everything in the settings, up to ready nodes."""
        network.make_bridge(self.addresses, str(self.folder))
        self._registry_component.start()
        self.control.start()
        for name in self.settings.nodes:
            self._add_machine(name)
        self._push_images()
        self.control.wait_api()
        for name, settings in self.settings.nodes.items():
            self._start_node(name, settings)
        self.control.wait_ready()
        for node in self.nodes.values():
            self._wait_ready(node)

    def stop(self) -> None:
        """Stop every process. The slot cleans up everything else."""
        for node in self.nodes.values():
            node.stop()
        for machine in self._machines.values():
            machine.stop()
        for component in (*self.control.components, self._registry_component):
            component.kill()
        self.cluster.close()

    def _wait_ready(self, node: Node) -> None:
        until(f"node {node.name} is ready", lambda: self._why_not_ready(node))

    def _why_not_ready(self, node: Node) -> str | None:
        """A component that has ended does not restart by itself, so the wait fails at once."""
        for component in node.components:
            component.require_running()
        return self.cluster.nodes.why_not_ready(node.name)

    def _add_machine(self, name: str) -> None:
        addresses = self.addresses.node(len(self._machines) + 1)
        place = Place(
            name=name,
            own=self.folder / "nodes" / name,
            logs=self.logs,
            run_folder=self.folder,
            visible=(CHECKOUT, *self.programs.folders),
        )
        machine = Machine(place, addresses)
        machine.start()
        cgroups.make(self.addresses.slot, name)
        network.connect(self.addresses, machine, list(self._machines.values()), str(self.folder))
        self._machines[name] = machine

    def _push_images(self) -> None:
        self._registry_component.wait_ready()
        for name, make in IMAGES.items():
            self.registry.push(make(), name)

    def _start_node(self, name: str, settings: NodeSettings) -> None:
        machine = self._machines[name]
        supplies = Supplies(self.programs, self.registry, self.kubelet(machine, settings))
        self.nodes[name] = furnish(machine, supplies, settings)
        self.nodes[name].start()

    def kubelet(self, machine: Machine, settings: NodeSettings) -> Kubelet:
        """The parameters of a node's kubelet, with its identity."""
        identities, name, ip = self.control.identities, machine.place.name, machine.addresses.ip
        serving = identities.kubelet_server(name, ip)
        return Kubelet(
            node=name,
            ip=ip,
            runtime_endpoint=settings.runtime_endpoint,
            cgroup_parent=cgroups.parent(self.addresses.slot, name),
            cluster_dns=SERVICES[10],
            ca=identities.ca,
            certificate=serving.certificate,
            key=serving.key,
            kubeconfig=identities.kubeconfig(identities.node(name), self.control.server),
            labels=settings.labels,
            config=settings.kubelet_config,
        )


@contextmanager
def running(settings: RigSettings | None = None, *, say: Say, keep_logs: Path | None = None) -> Generator[Rig]:
    """A running rig, removed afterwards. At the end its logs are copied to the folder `keep_logs`."""
    require_fit()
    settings = settings or RigSettings()
    programs = ensure("default", *settings.releases, say=say)
    with slots.claimed(clean) as slot:
        rig = Rig(slot, programs, settings)
        try:
            with _with_tails(rig):
                rig.start()
            yield rig
        finally:
            rig.stop()
            if keep_logs is not None:
                shutil.copytree(rig.logs, keep_logs, dirs_exist_ok=True)


@contextmanager
def _with_tails(rig: Rig) -> Generator[None]:
    try:
        yield
    except RigError as error:
        error.add_note(rig.tails())
        raise
