"""A node whose kubelet speaks through crishim: its cards, the signing keys, and the running crishim.

The node has four cards with a simulated driver in its own folder, two of them allocatable, and one FPGA board. Nothing
on it enforces parts of a card, so grants are whole cards unless a test sets otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec.structs import replace

from partage_base.keyring import encode_public
from partage_plugins.api import (
    GPU,
    Allocation,
    CardId,
    ContainerName,
    GpuGrant,
    GpuPart,
    Inventory,
    Kind,
    NodeName,
    PodUid,
)
from partage_plugins.api.keys import ALLOCATION
from partage_plugins.codecs import encode_inventory, key_id
from rig.client.pods import Pod
from rig.identity.people import TEAM
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, NodeSettings
from rig.rig import CHECKOUT
from support import crishim as daemons
from support.cluster_stage import ClusterStage
from support.crishim import SOCKET
from support.metrics import figures
from unit.gpu_node.nodes import CARDS, FIRST, LIBRARIES, SECOND, VERSION, card, information

NODE: Final = "n1"
KEYS: Final = "/etc/partage/keys.d"
INVENTORY: Final = "/run/partage/inventory.json"
OWN: Final = "/run/partage/crishim"
DRIVER: Final = "/run/nvidia/driver"
PROGRAMS: Final = CHECKOUT / "tests/support/node_programs"
LOST, KUBELETS = CardId("GPU-10571057-0000-4000-8000-000000000001"), CardId("GPU-cb1e7cb1-0000-4000-8000-000000000002")
MEMORY: Final = CARDS[0].memory_bytes
IDLE: Final = ("sh", "-c", "trap 'exit 0' TERM; sleep 3600 & wait")

_ALL_CARDS: Final = (
    *CARDS,
    replace(card(LOST, 2, "0000:1a:00.0"), health="lost"),
    replace(card(KUBELETS, 3, "0000:1b:00.0"), pool="kubelet"),
)
PLUGINS_FOLDER: Final = "/opt/partage-plugins"
_DEVICES: Final = ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools")


def inventory(*, cards: bool = True) -> str:
    gpu = {GPU.name: GpuPart(driver=VERSION, cuda="13.0", cards=_ALL_CARDS)} if cards else {}
    return encode_inventory(Inventory(kinds={**gpu, Kind("fpga"): {"boards": ["fpga0"]}})).decode()


def public_file(key: Ed25519PrivateKey) -> tuple[str, str]:
    """Path and content of the public key's file on a node."""
    public: Ed25519PublicKey = key.public_key()
    return f"{KEYS}/{key_id(public)}.pub", encode_public(public).decode()


def whole(card_id: str) -> GpuGrant:
    return GpuGrant(card=CardId(card_id), share_milli=1000, limit_milli=1000, memory_bytes=MEMORY)


def half(card_id: str) -> GpuGrant:
    """A grant of a part of a card, which needs enforcement."""
    return GpuGrant(card=CardId(card_id), share_milli=500, limit_milli=1000, memory_bytes=MEMORY // 2)


def allocation(pod: Pod, *grants: GpuGrant, container: str = "main", node: str = NODE, gen: int = 1) -> Allocation:
    containers = {ContainerName(container): {GPU.name: grants}}
    return Allocation(gen=gen, pod=PodUid(pod.uid), node=NodeName(node), containers=containers)


def crishim(
    number: int, *flags: str, env: Mapping[str, str] | None = None, former: int | None = None, node: str = NODE
) -> Daemon:
    """The daemon with the plugins of these nodes; ready when a socket other than the `former` one answers."""
    own = {"PARTAGE_DRIVER_ROOT": DRIVER, "PYTHONPATH": PLUGINS_FOLDER, "PARTAGE_PLUGINS_BLOCK": "isolation"}
    return daemons.crishim(*flags, node=node, env={**own, **(env or {})}, number=number, former=former)


def node_settings(key: Ed25519PrivateKey) -> NodeSettings:
    """A node with the inventory, the key, and the plugins of a package before anything starts."""
    return behind(crishim(0), {INVENTORY: inventory(), **plugin_files()}, key)


def behind(crishim: Daemon, files: Mapping[str, str], key: Ed25519PrivateKey) -> NodeSettings:
    """A node whose kubelet speaks through that crishim, with these files and the key."""
    path, text = public_file(key)
    return NodeSettings(runtime_endpoint=f"unix://{SOCKET}", daemons=(crishim,), files={**files, path: text})


def plugin_files() -> dict[str, str]:
    found = distribution("[partage.node]\nfpga = partage_fpga_template.node:FpgaNode\n")
    return {f"{PLUGINS_FOLDER}/{path}": text for path, text in found.items()}


def distribution(entry_points: str) -> dict[str, str]:
    """The files of an installed package with these entry points, by path."""
    return {
        "more-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: more\nVersion: 1\n",
        "more-1.dist-info/entry_points.txt": entry_points,
    }


def install_board(machine: Machine) -> None:
    """Give the node its own /dev with an FPGA board in it."""
    give_own_dev(machine)
    add_board(machine)


def add_board(machine: Machine) -> None:
    machine.run("mknod", "/dev/fpga0", "c", "1", "5")


def give_own_dev(machine: Machine) -> None:
    """Keep device nodes that are created in its /dev from now on off the host."""
    machine.run("sh", "-e", "-c", _OWN_DEV)


@contextmanager
def devices_in_dev(machine: Machine) -> Generator[None]:
    """Copy the driver's devices to the node's /dev: runc binds them from there if a container can't create any."""
    machine.run("sh", "-c", f"cp -a {DRIVER}/dev/nvidia* /dev/")
    try:
        yield
    finally:
        machine.run("sh", "-c", "rm /dev/nvidia*")


@contextmanager
def without_driver(machine: Machine) -> Generator[None]:
    """As on a node without cards: remove the device node that every driver has."""
    control = f"{DRIVER}/dev/nvidiactl"
    machine.run("mv", control, f"{control}.away")
    try:
        yield
    finally:
        machine.run("mv", f"{control}.away", control)


def install_devices(machine: Machine) -> None:
    """Install the simulated driver, and the node's own /dev with a board in it."""
    machine.run("mkdir", "-p", f"{DRIVER}/dev")
    for name in _DEVICES:
        machine.run("mknod", f"{DRIVER}/dev/{name}", "c", "1", "5")
    for library in LIBRARIES:
        machine.write(f"{DRIVER}/usr/lib/x86_64-linux-gnu/{library}.so.{VERSION}", library)
    for address, minor, card_id in (("0000:18:00.0", 1, FIRST), ("0000:19:00.0", 0, SECOND)):
        machine.write(f"{DRIVER}/proc/driver/nvidia/gpus/{address}/information", information(minor, address, card_id))
    install_board(machine)


_OWN_DEV: Final = """
mkdir -p /run/devices && mount -t tmpfs devices /run/devices
mkdir /run/devices/upper /run/devices/work /run/devices/pts /run/devices/shm
mount --bind /dev/pts /run/devices/pts
mount --bind /dev/shm /run/devices/shm
mount -t overlay -o lowerdir=/dev,upperdir=/run/devices/upper,workdir=/run/devices/work devices /dev
mount --bind /run/devices/pts /dev/pts
mount --bind /run/devices/shm /dev/shm
"""


@dataclass
class Stage(ClusterStage):
    """The node and its current crishim."""

    key: Ed25519PrivateKey
    crishim: Component
    flags: tuple[str, ...] = ()
    """Of every further crishim, unless it is started with others."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    """Of every further crishim."""
    number: int = 0
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def name(self, what: str) -> str:
        return f"{what}-{next(self._names)}"

    def idle_pod(self, what: str = "idle", **said: Any) -> Pod:
        return self.create_pod(self.name(what), **{"image": "busybox", "command": IDLE, "node": NODE, **said})

    def unbound_pod(self, what: str = "train", **said: Any) -> Pod:
        return self.create_pod(self.name(what), **{"image": "busybox", "command": IDLE, "scheduler": "nobody", **said})

    def granted_pod(self, *grants: GpuGrant, gen: int = 1, key: Ed25519PrivateKey | None = None, **said: Any) -> Pod:
        """A pod bound with these grants for its container."""
        pod = self.unbound_pod(**said)
        self.rig.cluster.bind(pod, NODE, allocation(pod, *grants, gen=gen), signed_by=key or self.key)
        return pod

    def pod_with(self, grants: Mapping[str, Mapping[str, object]], **said: Any) -> Pod:
        """A pod bound with grants of any kinds, by container and kind."""
        pod = self.unbound_pod(**said)
        containers = {
            ContainerName(name): {Kind(kind): each for kind, each in kinds.items()} for name, kinds in grants.items()
        }
        mine = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(NODE), containers=containers)
        self.rig.cluster.bind(pod, NODE, mine, signed_by=self.key)
        return pod

    def refused(self, pod: Pod) -> str:
        return pod.wait_waiting("CreateContainerError")

    def clear(self) -> None:
        """Delete all pods at once, and wait for those that hold cards."""
        holders = {pod.uid for pod in self.rig.cluster.pods.list(TEAM) if ALLOCATION in pod.annotations}
        made = self.rig.cluster.pods.end_made()
        uids = {each.pod for each in self.running()}
        for pod in made:
            if pod.uid in uids & holders:
                pod.wait_gone()

    def start_another(self, *flags: str, env: Mapping[str, str] | None = None) -> Component:
        """Start a new crishim that takes over the socket; the earlier one still runs, and ends by itself."""
        former = self.machine.path(SOCKET)
        self.number += 1
        daemon = crishim(
            self.number,
            *(flags or self.flags),
            env={**self.env, **(env or {})},
            former=former.stat().st_ino if former.exists() else None,
        )
        before, self.crishim = self.crishim, self.node.run(daemon)
        return before

    def replace(self, *flags: str, env: Mapping[str, str] | None = None) -> None:
        """Replace crishim as an operator does to change settings: start the new one, then stop the old one."""
        self.start_another(*flags, env=env).stop()

    def created_as(self, pod: Pod) -> dict[str, Any]:
        """The CreateContainer request that reached the runtime for the pod's container."""
        config: dict[str, Any] = self.inspected(pod)["config"]
        return config

    def metrics(self) -> dict[str, float]:
        """Current metrics of crishim, by name with labels."""
        return figures(self.machine, daemons.PORT + self.number)

    def write(self, path: str, text: str) -> None:
        """Write a file of the node atomically, as an operator's tools do."""
        self.machine.write(f"{path}.new", text)
        self.machine.path(f"{path}.new").rename(self.machine.path(path))
