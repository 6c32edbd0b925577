"""A node with simulated cards, crishim, and a broker that enforces memory limits.

By default crishim treats limits as advisory, so that it rejects nothing that a test is not about.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_isolation.library.objects import built as built_library
from partage_isolation.wire.client import BrokerClient, ControlError
from partage_isolation.wire.messages import BrokerReport, ContainerReport
from partage_plugins.api import GPU, Card, CardId, GpuGrant, GpuPart, Inventory, Pool
from partage_plugins.codecs import encode_inventory
from rig import images
from rig.client.pods import Pod
from rig.machine.components import Component
from rig.nodes.machine import Machine
from rig.nodes.node import Daemon, Node, NodeSettings
from rig.rig import Rig
from support.bytecode import BYTECODE
from support.crishim_stage import INVENTORY, NODE, Stage, behind, crishim, give_own_dev
from support.machine_image import with_driver_program
from support.metrics import everywhere
from support.simgpu_stage import CARDS, DRIVER, UUIDS, generate_cdi, install_driver, simgpud

IMAGE: Final = "memory"
PROGRAM: Final = Path(__file__).parents[1] / "real/isolation/c/memory.c"
SERVING: Final = ("/usr/bin/memory", "serve")
LIBRARIES: Final = "/opt/partage/library"
MIB: Final = 1 << 20
CARD_MIB: Final = 79 * 1024
"""Allocatable memory of a card in the inventory."""
CARD: Final = CardId(UUIDS[0])
ADVISORY: Final = ("--enforce", "advisory")
ENV: Final = {"PARTAGE_PLUGINS_BLOCK": "", "PARTAGE_DRIVER_ROOT": DRIVER}
_BROKER: Final = (sys.executable, "-P", "-m", "partage_isolation")
_PLACES: Final = ("--library-folder", LIBRARIES, "--driver-root", DRIVER)
BROKER_PORT: Final = 9470


def image() -> images.Image:
    """A program that allocates memory on command."""
    return with_driver_program(SERVING[0], PROGRAM)


def inventory(pool: Pool = "shared") -> str:
    cards = tuple(
        Card(
            id=CardId(uuid),
            index=index,
            model="NVIDIA H100 80GB HBM3" if index == 0 else "NVIDIA L4",
            memory_bytes=(CARD_MIB if index == 0 else 22 * 1024) * MIB,
            compute_capability="9.0",
            pci=f"0000:{index + 1:02x}:00.0",
            pool=pool,
        )
        for index, uuid in enumerate(UUIDS)
    )
    return encode_inventory(Inventory(kinds={GPU.name: GpuPart(driver="580.95.05", cuda="13.0", cards=cards)})).decode()


def memory(mib: int, *, share: int = 0, card: CardId = CARD) -> GpuGrant:
    return GpuGrant(card=card, share_milli=share, limit_milli=1000, memory_bytes=mib * MIB)


def node_settings(key: Ed25519PrivateKey) -> NodeSettings:
    """A node with crishim only; driver and broker are started later, in any order."""
    return behind(crishim(0, *ADVISORY, env=ENV), {INVENTORY: inventory()}, key)


def broker(*flags: str, node: str = NODE) -> Daemon:
    address = ("--metrics-address", everywhere(BROKER_PORT))
    argv = (*_BROKER, *_PLACES, "--node-name", node, "--log-format", "text", *address, *flags)
    return Daemon("broker", argv, _why_no_broker, BYTECODE)


def install_library(machine: Machine, objects: Path | None = None) -> str:
    """Install the library as an operator does, of these objects or this tree; returns the folder for new containers."""
    built = built_library() if objects is None else objects
    argv = (*_BROKER, *_PLACES, "--install-library")
    return machine.run("env", f"PARTAGE_PRELOAD={built}", *argv).strip()


def isolating(rig: Rig, key: Ed25519PrivateKey) -> IsolationStage:
    """The stage on a running rig: with the image, and on the node its cards, the library and a broker."""
    rig.registry.push(image(), IMAGE)
    node = rig.nodes[NODE]
    return IsolationStage(rig, key, node.daemons["crishim"], ADVISORY, ENV, broker=equip(node))


def equip(node: Node, cards: Sequence[str] = CARDS, *, name: str = "rig") -> Component:
    """Install cards with driver and NVIDIA's description of them, the node's own /dev, the library, and the broker."""
    install_driver(node.machine, cards, name=name)
    give_own_dev(node.machine)
    node.run(simgpud())
    generate_cdi(node.machine)
    install_library(node.machine)
    return node.run(broker(node=node.name))


@dataclass(kw_only=True)
class IsolationStage(Stage):
    """The node, its current crishim, and its broker."""

    broker: Component

    def limited_pod(self, *grants: GpuGrant, **said: Any) -> Pod:
        """A pod whose program allocates on command."""
        fields: dict[str, Any] = {"image": IMAGE, "command": SERVING, **said}
        return self.granted_pod(*grants, **fields)

    def partage(self, *arguments: str) -> str:
        return self.machine.run(sys.executable, "-P", "-m", "partage_cli", *arguments)


def ask(pod: Pod, words: str, container: str = "main") -> str:
    """The answer of the pod's serving program to a command."""
    return pod.exec(SERVING[0], "ask", words, container=container).strip()


def seen(pod: Pod, container: str = "main") -> dict[str, int]:
    """Total and free card memory in MiB, as the program in the pod sees them."""
    pairs = (word.split("=") for word in ask(pod, "view", container).split())
    return {name: int(value) // MIB for name, value in pairs}


def told_by(machine: Machine) -> BrokerReport:
    return _client(machine).tell()


def limits_of(machine: Machine, pod: Pod) -> ContainerReport:
    """The limits of the pod's container in that machine's broker."""
    (found,) = (each for each in told_by(machine).containers if each.pod.uid == pod.uid)
    return found


def _client(machine: Machine) -> BrokerClient:
    return BrokerClient(machine.path("/"), deadline_s=600)


def _why_no_broker(machine: Machine) -> str | None:
    try:
        _client(machine).tell()
    except ControlError as error:
        return str(error)
    return None
