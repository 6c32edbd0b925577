"""Reads and writes a bundle's `config.json` as a whole, and looks up device nodes on the host."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_oci.rewrite import DeviceNode, Document
from partage_plugins.api.containers import Device
from partage_plugins.errors import Refused

CONFIG: Final = "config.json"
_MAX_BYTES: Final = 8 << 20
"""Engines' own limits are far below: a program's variables and arguments are at most 2 MiB."""


def read_document(path: Path) -> Document:
    """The configuration as JSON; raises `Refused` if it is not a valid one, and `OSError`.

    Python's own decoder keeps numbers of any length unchanged.
    """
    with path.open("rb") as file:
        raw = file.read(_MAX_BYTES + 1)
    if len(raw) > _MAX_BYTES:
        raise Refused(f"{path} has more than {_MAX_BYTES >> 20} MiB, which no container's configuration needs")
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{path} can't be read as JSON: {error}") from None
    if not isinstance(document, dict):
        raise Refused(f"{path} holds no JSON object, which a container's configuration is")
    return document


def write_document(path: Path, document: Document) -> None:
    """Replace the file, keeping its mode and owner; raises `OSError`."""
    before = path.stat()
    now = write_whole(path, json.dumps(document, separators=(",", ":")).encode(), mode=stat.S_IMODE(before.st_mode))
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        os.chown(path, before.st_uid, before.st_gid)


def device_nodes(devices: Iterable[Device]) -> list[tuple[Device, DeviceNode]]:
    """Each device with the node at its path on the host; raises `Refused` if that is not a device."""
    return [(each, _node(each.host_path)) for each in devices]


def _node(path: str) -> DeviceNode:
    try:
        status = Path(path).stat()
    except OSError as error:
        raise Refused(f"{path} can't be put into the container: {error.strerror}; is the driver loaded?") from None
    if not (stat.S_ISCHR(status.st_mode) or stat.S_ISBLK(status.st_mode)):
        raise Refused(f"{path} is no device on this machine; is the driver loaded?")
    return DeviceNode(
        type="c" if stat.S_ISCHR(status.st_mode) else "b",
        major=os.major(status.st_rdev),
        minor=os.minor(status.st_rdev),
        mode=stat.S_IMODE(status.st_mode),
        uid=status.st_uid,
        gid=status.st_gid,
    )
