"""Creates the document of our CDI kind: from NVIDIA's own, or from the installed driver. Pure.

NVIDIA's document names each card by its UUID, by an index and all of them as `all`. Ours copies the entries under UUIDs
unchanged, with the edits that are common to all cards. So a container gets exactly what NVIDIA's tools intend, by a
kind that no default runtime, no other plugin and no image variable hands out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from partage_gpu.node.attachment import CARD_ID, NVIDIA_KIND, OUR_KIND
from partage_gpu.node.raw import EVERYTHING, InstalledDriver, card_device, shared_parts
from partage_plugins.api.containers import Device, Mount
from partage_plugins.api.gpu import Card
from partage_plugins.errors import Refused

_VERSION: Final = re.compile(r"(0\.[3-9]|1\.[0-9]{1,3})\.[0-9]{1,3}", re.ASCII)
_OUR_VERSION: Final = "0.5.0"  # the first with host paths of device nodes; containerd 1.7 reads it
_CARD_NODE: Final = re.compile(r"/dev/nvidia[0-9]+", re.ASCII)
_MOST_DEVICES: Final = 4096


class _Node(Struct, frozen=True):
    path: str


class _Edits(Struct, frozen=True):
    nodes: tuple[_Node, ...] | None = msgspec.field(name="deviceNodes", default=None)

    @property
    def cards(self) -> set[str]:
        return {node.path for node in self.nodes or () if _CARD_NODE.fullmatch(node.path)}


class _Device(Struct, frozen=True):
    name: str
    edits: _Edits = msgspec.field(name="containerEdits")


class _Document(Struct, frozen=True):
    version: str = msgspec.field(name="cdiVersion")
    kind: str
    devices: Annotated[tuple[_Device, ...], Meta(max_length=_MOST_DEVICES)]
    edits: _Edits = msgspec.field(name="containerEdits", default=_Edits())


class Published(Struct, frozen=True):
    """The text of our document, and the cards in it."""

    text: bytes
    cards: frozenset[str]


def republished(document: Any) -> Published:  # noqa: ANN401  read from a file
    """NVIDIA's document under our kind; a `ValueError` states why it can't be converted."""
    read = msgspec.convert(document, _Document)  # a ValidationError, which is a ValueError, names the path
    _require_one_card_each(read)
    devices = [device for device in document["devices"] if CARD_ID.fullmatch(device["name"])]
    names = [device["name"] for device in devices]
    if not names:
        raise ValueError("it names no card by UUID; make it with --device-name-strategy=uuid")
    if len(set(names)) < len(names):
        raise ValueError("it names one card twice")
    return _published(read.version, devices, document.get("containerEdits"))


def built(cards: Iterable[Card], driver: InstalledDriver) -> tuple[Published, Mapping[str, Refused]]:
    """The document for the installed driver, and the reasons why cards are missing from it."""
    shared, refused, devices = shared_parts(driver, EVERYTHING), dict[str, Refused](), list[Any]()
    for card in cards:
        try:
            node = card_device(card, driver)
        except Refused as why:
            refused[card.id] = why
        else:
            devices.append({"name": card.id, "containerEdits": {"deviceNodes": [_node(node)]}})
    edits = {"deviceNodes": [_node(device) for device in shared.devices], "mounts": [_mount(m) for m in shared.mounts]}
    return _published(_OUR_VERSION, devices, edits), refused


def _require_one_card_each(read: _Document) -> None:
    if read.kind != NVIDIA_KIND:
        raise ValueError(f"its kind is {read.kind!r:.80}; allowed: {NVIDIA_KIND}")
    if not _VERSION.fullmatch(read.version):
        raise ValueError(f"its cdiVersion is {read.version!r:.40}; allowed: 0.3.0 to 1.x")
    if read.edits.cards:
        raise ValueError(f"its common edits give {min(read.edits.cards)} to every container")
    for device in read.devices:
        if CARD_ID.fullmatch(device.name) and len(device.edits.cards) != 1:
            raise ValueError(f"device {device.name} gives {len(device.edits.cards)} cards; allowed: its own")


def _published(version: str, devices: list[Any], edits: Any) -> Published:  # noqa: ANN401
    ordered = sorted(devices, key=lambda device: str(device["name"]))
    document = {"cdiVersion": version, "kind": OUR_KIND, "devices": ordered}
    if edits:
        document["containerEdits"] = edits
    text = msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"
    return Published(text, frozenset(device["name"] for device in ordered))


def _node(device: Device) -> dict[str, str]:
    return {"path": device.container_path, "hostPath": device.host_path, "permissions": device.permissions}


def _mount(mount: Mount) -> dict[str, Any]:
    options = ["ro", "nosuid", "nodev", "rbind", "rprivate"]
    return {"hostPath": mount.host_path, "containerPath": mount.container_path, "options": options}
