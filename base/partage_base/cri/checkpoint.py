"""kubelet's device manager checkpoint: which devices each container got. Only root can read it.

It is written when devices are allocated, so before the container is created, and has pods by uid only.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from partage_base.thread_safety import thread_safe

CHECKPOINT: Final = "var/lib/kubelet/device-plugins/kubelet_internal_checkpoint"


@dataclass(frozen=True, kw_only=True)
class RecordedUse:
    """A container and its devices of one resource."""

    pod_uid: str
    container: str
    resource: str
    devices: tuple[str, ...]


class _Entry(msgspec.Struct, frozen=True, rename="pascal"):
    pod_uid: str = msgspec.field(name="PodUID")
    container_name: str
    resource_name: str = ""
    device_ids: dict[str, list[str]] | None = msgspec.field(name="DeviceIDs", default=None)
    """By NUMA node."""


class _Data(msgspec.Struct, frozen=True):
    entries: list[_Entry] | None = msgspec.field(name="PodDeviceEntries", default=None)


class _Checkpoint(msgspec.Struct, frozen=True):
    data: _Data = msgspec.field(name="Data")


def recorded_uses(path: Path) -> tuple[RecordedUse, ...] | None:
    """All uses; None if the file can't be read, or does not exist because there never was a device plugin."""
    try:
        checkpoint = msgspec.json.decode(path.read_bytes(), type=thread_safe(_Checkpoint))
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return tuple(_uses(checkpoint.data.entries or ()))


def _uses(entries: list[_Entry] | tuple[()]) -> Iterator[RecordedUse]:
    for entry in entries:
        devices = tuple(device for ids in (entry.device_ids or {}).values() for device in ids)
        yield RecordedUse(
            pod_uid=entry.pod_uid, container=entry.container_name, resource=entry.resource_name, devices=devices
        )
