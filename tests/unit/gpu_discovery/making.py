"""Made-up facts, a driver that returns them, and a node made of files to run discovery on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from partage_gpu.discovery.discovery import Discovery
from partage_gpu.discovery.node_files import CHECKPOINT, SOCKETS
from partage_gpu.discovery.settings import discovery_settings
from partage_gpu.nvml.facts import CardFacts, InstanceFacts, Look, NodeFacts, Sample, Trouble, Xid
from partage_plugins.api import GPU, Card, GpuPart, NodeName
from partage_plugins.api.inventory import Inventory
from partage_plugins.api.node import DeviceUse, NodeContext
from partage_plugins.api.places import INVENTORY_FILE, PAUSE_FOLDER
from partage_plugins.codecs import encode_inventory

ONE, TWO, THREE = (f"GPU-{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "123")
MIG_A, MIG_B = (f"MIG-{digit * 8}-0000-4000-8000-{digit * 12}" for digit in "ab")
GIB = 1 << 30
NO_LIBRARY = Trouble(kind="no-library", sentence="libnvidia-ml.so.1 is not below /")
HANGS = Trouble(kind="hangs", sentence="the NVIDIA driver hangs: no call returned for 7 s")
SLOW = Trouble(kind="slow", sentence="the NVIDIA driver is slow: no answer for 3 s")
STARTS = Trouble(kind="starts", sentence="the NVIDIA driver has not found its cards yet")
QUIET_S = 60.0


def gpu(uuid: str = ONE, index: int = 0, **others: Any) -> CardFacts:
    known: dict[str, Any] = {
        "minor": index,
        "model": "NVIDIA H100 80GB HBM3",
        "memory_bytes": 80 * GIB,
        "compute_capability": "9.0",
        "pci": f"00000000:{0x18 + index:02X}:00.0",
        "figures": {"numa_node": 0},
        "ecc_uncorrected": 0,
    }
    return CardFacts(uuid=uuid, index=index, **{**known, **others})


def instance(uuid: str, profile: str = "1g.10gb") -> InstanceFacts:
    return InstanceFacts(uuid=uuid, profile=profile, memory_bytes=10 * GIB)


def node_of(*gpus: CardFacts, **others: Any) -> NodeFacts:
    return NodeFacts(driver="580.65.06", cuda="13.0", cards=gpus, **others)


def use(device: str, *, resource: str = "nvidia.com/gpu", pod: str = "train", container: str = "main") -> DeviceUse:
    return DeviceUse(resource=resource, device=device, namespace="ml", pod=pod, container=container)


@dataclass
class FakeDriver:
    """Returns the facts that a test sets."""

    says: Look = field(default_factory=lambda: node_of(gpu(ONE, 0), gpu(TWO, 1)))
    reported: list[Xid] = field(default_factory=list)
    measured: tuple[Sample, ...] = ()
    is_held: bool = False
    is_closed: bool = False

    def look(self) -> Look:
        self.is_held = True
        return self.says

    def xids(self) -> tuple[Xid, ...]:
        reported, self.reported = tuple(self.reported), []
        return reported

    def samples(self) -> tuple[Sample, ...]:
        assert self.is_held, "a driver that was let go is opened by measuring"
        return self.measured

    def let_go(self) -> None:
        self.is_held = False

    def close(self) -> None:
        self.is_held, self.is_closed = False, True


class MadeNode:
    """A folder that stands for a node's `/`, with a driver and a clock."""

    def __init__(self, root: Path, **settings: str) -> None:
        self.root, self.driver, self.now_s = root, FakeDriver(), 1000.0
        self.settings: Mapping[str, str] = {f"PARTAGE_GPU_{name.upper()}": value for name, value in settings.items()}
        self.found: GpuPart | None = None
        self.begin()

    def begin(self) -> None:
        """Starts discovery as a new process would."""
        context = NodeContext(node=NodeName("n1"), role="advertiser", root=PurePosixPath(self.root), wake=lambda: None)
        settings = discovery_settings(self.settings)
        self.discovery = Discovery(context, settings, driver=self.driver, clock=lambda: self.now_s)

    def look(self, in_use: list[DeviceUse] | None = None, *, after_s: float = 5.0) -> tuple[Card, ...]:
        """The cards after a while; saves them as the advertiser does."""
        self.now_s += after_s
        self.found = self.discovery.discover(in_use)
        if self.found is None:
            return ()
        checked: GpuPart = msgspec.convert(msgspec.to_builtins(self.found), GpuPart)
        self.write(INVENTORY_FILE, encode_inventory(Inventory(kinds={GPU.name: checked})))
        return checked.cards

    def health(self, in_use: list[DeviceUse] | None = None, *, after_s: float = 5.0) -> dict[str, str]:
        """The health of each card; for lost ones with the reason."""
        cards = self.look(in_use, after_s=after_s)
        return {card.id: f"lost: {card.lost_because}" if card.is_lost else card.health for card in cards}

    def pools(self) -> dict[str, str]:
        return {card.id: card.pool for card in self.look()}

    def xid(self, uuid: str, *numbers: int) -> None:
        self.driver.reported += [Xid(uuid=uuid, number=number) for number in numbers]

    def write(self, path: str, content: str | bytes) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return file

    def registered(self, **resources: list[str] | None) -> None:
        """The checkpoint of device plugins that kubelet keeps; `nvidia.com/gpu` is written `nvidia`."""
        named = {"nvidia": "nvidia.com/gpu", "other": "example.com/fpga"}
        devices = {named[name]: ids for name, ids in resources.items()}
        content = {"Data": {"PodDeviceEntries": None, "RegisteredDevices": devices}, "Checksum": 1}
        self.write(CHECKPOINT, msgspec.json.encode(content))

    def dra_driver(self) -> Path:
        return self.write(f"{SOCKETS}/gpu.nvidia.com-reg.sock", "")

    def pause(self, why: str, who: str = "by-hand") -> Path:
        return self.write(f"{PAUSE_FOLDER}/{who}", f"{why}\n")
