"""A node whose kubelet speaks through crishim, as tests use it: what it has, who may sign, and which crishim runs.

The node has four cards with a simulated driver in a folder of its own, two of which are free for sharing, and one FPGA
board. Nothing on it enforces parts of a card, so grants are whole cards unless a test says otherwise.
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
from partage_plugins.codecs import encode_inventory, key_id
from partage_plugins.vocabulary import (
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
from partage_plugins.vocabulary.keys import ALLOCATION
from rig.client.manifests import a_pod
from rig.client.pods import Pod
from rig.client.wait import until
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, NodeSettings
from rig.rig import CHECKOUT
from support import crishim as daemons
from support.cluster_stage import ClusterStage
from support.crishim import SOCKET
from support.metrics import figures
from unit.gpu_node.nodes import CARDS, FIRST, LIBRARIES, SECOND, VERSION, card, information

TEAM: Final = "team-a"
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
    """The path and the content of its public half on a node."""
    public: Ed25519PublicKey = key.public_key()
    return f"{KEYS}/{key_id(public)}.pub", encode_public(public).decode()


def whole(card_id: str) -> GpuGrant:
    return GpuGrant(card=CardId(card_id), share_milli=1000, limit_milli=1000, memory_bytes=MEMORY)


def half(card_id: str) -> GpuGrant:
    """A part of a card, which somebody would have to enforce."""
    return GpuGrant(card=CardId(card_id), share_milli=500, limit_milli=1000, memory_bytes=MEMORY // 2)


def allocation(pod: Pod, *grants: GpuGrant, container: str = "main", node: str = NODE, gen: int = 1) -> Allocation:
    containers = {ContainerName(container): {GPU.name: grants}}
    return Allocation(gen=gen, pod=PodUid(pod.uid), node=NodeName(node), containers=containers)


def crishim(
    number: int, *flags: str, env: Mapping[str, str] | None = None, former: int | None = None, node: str = NODE
) -> Daemon:
    """The daemon, with the plugins of these nodes; ready when a socket that is not the `former` one answers."""
    own = {"PARTAGE_DRIVER_ROOT": DRIVER, "PYTHONPATH": PLUGINS_FOLDER, "PARTAGE_PLUGINS_BLOCK": "isolation"}
    return daemons.crishim(*flags, node=node, env={**own, **(env or {})}, number=number, former=former)


def files(*keys: Ed25519PrivateKey) -> dict[str, str]:
    """What is on the node before anything starts: inventory, keys, and the plugins that a package would bring."""
    return {INVENTORY: inventory(), **dict(map(public_file, keys)), **plugin_files()}


def node_settings(*keys: Ed25519PrivateKey) -> NodeSettings:
    return NodeSettings(runtime_endpoint=f"unix://{SOCKET}", daemons=(crishim(0),), files=files(*keys))


def plugin_files() -> dict[str, str]:
    plugins = "[partage.node]\nfpga = partage_fpga_template.node:FpgaNode\n"
    return {
        f"{PLUGINS_FOLDER}/more-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: more\nVersion: 1\n",
        f"{PLUGINS_FOLDER}/more-1.dist-info/entry_points.txt": plugins,
    }


def install_board(machine: Machine) -> None:
    """A /dev of the node's own with an FPGA board in it."""
    give_own_dev(machine)
    add_board(machine)


def add_board(machine: Machine) -> None:
    machine.run("mknod", "/dev/fpga0", "c", "1", "5")


def give_own_dev(machine: Machine) -> None:
    """What is made in its /dev from now on is not on the host."""
    machine.run("sh", "-e", "-c", _OWN_DEV)


@contextmanager
def devices_in_dev(machine: Machine) -> Generator[None]:
    """The driver's in the node's own /dev, too: runc binds them from there where a container may make none."""
    machine.run("sh", "-c", f"cp -a {DRIVER}/dev/nvidia* /dev/")
    try:
        yield
    finally:
        machine.run("sh", "-c", "rm /dev/nvidia*")


@contextmanager
def without_driver(machine: Machine) -> Generator[None]:
    """As on a node without cards: the device that every driver has is not there."""
    control = f"{DRIVER}/dev/nvidiactl"
    machine.run("mv", control, f"{control}.away")
    try:
        yield
    finally:
        machine.run("mv", f"{control}.away", control)


def install_devices(machine: Machine) -> None:
    """The simulated driver, and a /dev of the node's own with a board in it."""
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
    """The node and the crishim on it that runs now."""

    key: Ed25519PrivateKey
    crishim: Component
    number: int = 0
    _names: itertools.count[int] = field(default_factory=itertools.count)

    def name(self, what: str) -> str:
        return f"{what}-{next(self._names)}"

    def idle_pod(self, what: str = "idle", **said: Any) -> Pod:
        fields: dict[str, Any] = {"image": "busybox", "command": IDLE, "node": NODE, **said}
        return self.rig.cluster.pods.create(TEAM, a_pod(self.name(what), **fields))

    def unbound_pod(self, what: str = "train", **said: Any) -> Pod:
        fields: dict[str, Any] = {"image": "busybox", "command": IDLE, "scheduler": "nobody", **said}
        return self.rig.cluster.pods.create(TEAM, a_pod(self.name(what), **fields))

    def granted_pod(self, *grants: GpuGrant, gen: int = 1, key: Ed25519PrivateKey | None = None, **said: Any) -> Pod:
        """A pod that was bound with these grants for its container."""
        pod = self.unbound_pod(**said)
        self.rig.cluster.bind(pod, NODE, allocation(pod, *grants, gen=gen), signed_by=key or self.key)
        return pod

    def pod_with(self, grants: Mapping[str, Mapping[str, object]], **said: Any) -> Pod:
        """A pod that was bound with grants of any kinds, by container and kind."""
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
        """Ends all pods at once, and waits for those that hold cards."""
        holders = {pod.uid for pod in self.rig.cluster.pods.list(TEAM) if ALLOCATION in pod.annotations}
        made = self.rig.cluster.pods.end_made()
        uids = {each.pod for each in self.containers() if each.running}
        for pod in made:
            if pod.uid in uids & holders:
                pod.wait_gone()

    def start_another(self, *flags: str, env: Mapping[str, str] | None = None) -> Component:
        """A new crishim takes over the socket; the one before still runs, and ends by itself."""
        former = self.machine.path(SOCKET)
        self.number += 1
        daemon = crishim(self.number, *flags, env=env, former=former.stat().st_ino if former.exists() else None)
        before, self.crishim = self.crishim, self.node.run(daemon)
        return before

    def replace(self, *flags: str, env: Mapping[str, str] | None = None) -> None:
        """As an operator does who changes settings: the new one first, then the old one is told to end."""
        self.start_another(*flags, env=env).stop()

    def created_as(self, pod: Pod) -> dict[str, Any]:
        """The request of which the runtime made the pod's container."""
        config: dict[str, Any] = self.inspected(pod)["config"]
        return config

    def metrics(self) -> dict[str, float]:
        """The figures of crishim now, by name with labels."""
        return figures(self.machine, daemons.PORT + self.number)

    def write(self, path: str, text: str) -> None:
        """A file of the node, in one step, as an operator's tools write."""
        self.machine.write(f"{path}.new", text)
        self.machine.path(f"{path}.new").rename(self.machine.path(path))

    def kill_container(self, pod: Pod, container: str = "main") -> None:
        """Its process dies, as a program that crashes; kubelet starts it again."""
        before = pod.container(container).get("restartCount", 0)
        found = next(
            each for each in self.containers() if (each.pod, each.name) == (pod.uid, container) and each.running
        )
        self.crictl("stop", "--timeout", "0", found.id)
        until(
            f"{pod.name}'s container is known to have ended",
            lambda: None if _has_ended(pod, container, before) else "it has not",
        )


def _has_ended(pod: Pod, container: str, before: int) -> bool:
    pod.refresh()
    status = pod.container(container)
    return bool(status.get("restartCount", 0) > before or "running" not in status.get("state", {}))
