"""Nodes with a driver, made of folders, on which the plugin finds what it would find on a real one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec.structs import replace

from partage_gpu.node import GpuNode
from partage_plugins.api import GPU, Adjustment, Card, CardId, GpuGrant, GpuPart, Granted, NodeName
from partage_plugins.api.node import NodeContext
from partage_plugins.testing.examples import container

SAMPLES = Path(__file__).parent / "samples"
VERSION = "580.65.06"
FIRST, SECOND = CardId("GPU-5a1e3c8e-0f0b-4d2a-9c11-0123456789ab"), CardId("GPU-b7d0f6a4-2c3d-4e5f-8a9b-fedcba987654")
MIG = CardId("MIG-41f7d2c0-6a4e-5b0e-9d6f-1c2b3a495867")
LIBRARIES = ("libcuda", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvcuvid")


def card(card_id: str, index: int, pci: str) -> Card:
    return Card(
        id=CardId(card_id),
        index=index,
        model="NVIDIA H100 80GB HBM3",
        memory_bytes=80 << 30,
        compute_capability="9.0",
        pci=pci,
        pool="shared",
    )


CARDS = (card(FIRST, 0, "00000000:18:00.0"), card(SECOND, 1, "0000:19:00.0"))
MIG_CARD = replace(card(MIG, 2, "0000:1A:00.0"), mig_profile="1g.10gb", parent=CardId("GPU-parent"))


def part(*cards: Card, driver: str = VERSION) -> GpuPart:
    return GpuPart(driver=driver, cuda="13.0", cards=cards or (*CARDS, MIG_CARD))


def granted(*ids: str, of: GpuPart | None = None) -> Granted:
    grants = tuple(GpuGrant(card=CardId(each), share_milli=500, limit_milli=1000, memory_bytes=1 << 30) for each in ids)
    return Granted(gen=1, grants={GPU.name: grants}, parts={GPU.name: of or part()})


def information(minor: int, address: str, uuid: str) -> str:
    """A card's file below /proc/driver/nvidia/gpus."""
    return (
        "Model: \t\t NVIDIA H100 80GB HBM3\n"
        "IRQ:   \t\t 16\n"
        f"GPU UUID: \t {uuid}\n"
        "Video BIOS: \t 96.00.74.00.01\n"
        "Bus Type: \t PCIe\n"
        f"Bus Location: \t {address}\n"
        f"Device Minor: \t {minor}\n"
        "GPU Excluded:\t No\n"
    )


@dataclass(frozen=True)
class MadeNode:
    """A folder that stands for a node's `/`."""

    root: Path

    def with_driver(self, below: str = "") -> MadeNode:
        """Two cards whose minor numbers are not their indices, control nodes, libraries and nvidia-smi."""
        home = self.root / below
        for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"):
            self.device(f"{below}/dev/{name}")
        self.gpu("0000:18:00.0", 1, FIRST)
        self.gpu("0000:19:00.0", 0, "GPU-????????-????-????-????-????????????")  # not used yet
        folder = home / f"usr/lib/{os.uname().machine}-linux-gnu"
        folder.mkdir(parents=True)
        for library in LIBRARIES:
            (folder / f"{library}.so.{VERSION}").touch()
        (home / "usr/bin").mkdir()
        (home / "usr/bin/nvidia-smi").touch()
        return self

    def device(self, path: str) -> None:
        """A link to a device node, which serves the same and needs no privilege."""
        link = self.root / path.lstrip("/")
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to("/dev/null")

    def gpu(self, address: str, minor: int, uuid: str) -> None:
        self.write(f"proc/driver/nvidia/gpus/{address}/information", information(minor, address, uuid))

    def write(self, path: str, text: str | bytes, mode: int = 0o644) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode() if isinstance(text, str) else text)
        file.chmod(mode)
        return file

    @property
    def own_spec(self) -> Path:
        return self.root / "var/run/cdi/partage.dev-gpu.json"

    def plugin(self) -> GpuNode:
        plugin = GpuNode()
        context = NodeContext(node=NodeName("n1"), role="crishim", root=PurePosixPath(self.root), wake=lambda: None)
        plugin.partage_started(context)
        return plugin

    def adjusted(self, *ids: str, of: GpuPart | None = None, **fields: Any) -> Adjustment:
        """The adjustment of a container that was granted these cards; `fields` are the container's."""
        answer = self.plugin().partage_adjust(container(**fields), granted(*ids, of=of))
        assert answer is not None
        return answer


def attaches(adjustment: Adjustment, card_id: str) -> bool:
    """Whether the card is attached by our CDI kind."""
    return adjustment.cdi == (f"partage.dev/gpu={card_id}",)


def visible(adjustment: Adjustment) -> str:
    return adjustment.env["NVIDIA_VISIBLE_DEVICES"]


def devices(adjustment: Adjustment) -> Mapping[str, str]:
    return {device.container_path: device.host_path for device in adjustment.devices}


def mounts(adjustment: Adjustment) -> Mapping[str, str]:
    return {mount.container_path: mount.host_path for mount in adjustment.mounts}
