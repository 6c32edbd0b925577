"""A bundle's `config.json`, read and written as a whole, and what is on the host at a device's path."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_oci.rewrite import DeviceNode, Document
from partage_plugins.errors import Refused
from partage_plugins.vocabulary.containers import Device

CONFIG: Final = "config.json"
_MAX_BYTES: Final = 8 << 20
"""Engines' own bounds are far below: all variables and arguments of a program are 2 MiB at most."""


def read_document(path: Path) -> Document:
    """Raises `Refused` for what is no configuration, and `OSError`.

    By Python's own decoder, which keeps numbers of any length as they are.
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
    """In place of what stands there, with its mode and owner; raises `OSError`."""
    before = path.stat()
    now = write_whole(path, json.dumps(document, separators=(",", ":")).encode(), mode=stat.S_IMODE(before.st_mode))
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        os.chown(path, before.st_uid, before.st_gid)


def device_nodes(devices: Iterable[Device]) -> list[tuple[Device, DeviceNode]]:
    """Each with what is on the host at its path; raises `Refused` where that is no device."""
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
