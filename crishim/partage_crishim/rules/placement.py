"""Path rules: volumes must not overlap our mounts, and plugins' sources must be what they claim. Pure.

A volume at, above or below one of our paths would let the container's owner replace or hide the files that enforce
limits. An image can still redirect paths by its own links; the broker detects that by checking the actual mounts.

The runtime creates a missing source as an empty folder, even for a library, and follows any link. So a source that a
plugin names must exist and resolve to a path below a folder that the operator allows; a device must be a device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from partage_base.cri.create_request import RequestMount
from partage_crishim.rules.errors import PlacementRefused
from partage_plugins.api import Adjustment
from partage_plugins.api.containers import LONGEST_PATH
from partage_plugins.rules.merge import Owners
from partage_plugins.rules.paths import clean_path, is_below

IN_CONTAINER: Final = "/run/partage"
"""The folder of the broker's socket and the library in a container."""
_ALIASES: Final = (("/var/run", "/run"),)  # links in nearly every image


@dataclass(frozen=True)
class PathTarget:
    """The target of a path with all links resolved."""

    real_path: str
    kind: Literal["device", "other"]


FileLookup = Callable[[str], PathTarget | None]
"""Resolves a path of the node with all its links; None if nothing is there."""


@dataclass(frozen=True, kw_only=True)
class Roots:
    """Folders, with all links resolved, below which a source may be."""

    mounts: tuple[str, ...]
    devices: tuple[str, ...]


def require_apart(mounts: Iterable[RequestMount], places: Iterable[str]) -> None:
    """Refuse a request that mounts at, above or below one of our paths."""
    ours = {path: _cleaned(path) for path in (IN_CONTAINER, *places)}
    for mount in mounts:
        volume = _cleaned(mount.container_path)
        for path, place in ours.items():
            if is_below(volume, place) or is_below(place, volume):
                raise PlacementRefused(
                    f"partage: the container mounts a volume at {mount.container_path!a:.200}, which meets {path} "
                    "of its grant; mount the volume elsewhere"
                )


def require_sources(adjustment: Adjustment, owners: Owners, files: FileLookup, roots: Roots) -> None:
    """Refuse mounts and devices that are missing, of the wrong type, or outside the allowed folders."""
    for mount in adjustment.mounts:
        who = _owner(owners, f"mounts {mount.container_path}")
        _found(files, mount.host_path, roots.mounts, who)
    for device in adjustment.devices:
        who = _owner(owners, f"devices {device.container_path}")
        if _found(files, device.host_path, roots.devices, who).kind != "device":
            raise PlacementRefused(f"partage: plugin {who} names {device.host_path} as a device, which it is not")


def _found(files: FileLookup, path: str, roots: tuple[str, ...], who: str) -> PathTarget:
    found = files(path)
    if found is None:
        raise PlacementRefused(f"partage: plugin {who} names {path}, which is not on this node; is it installed there?")
    if not any(is_below(found.real_path, root) for root in roots):
        raise PlacementRefused(
            f"partage: plugin {who} names {path}, which leads out of the folders that plugins may use; "
            "see crishim's setting for them"
        )
    return found


def _owner(owners: Owners, field: str) -> str:
    return " and ".join(owners.get(field, ())) or "(unknown)"


def _cleaned(path: str) -> str:
    return _remembered(path) if len(path) <= LONGEST_PATH else _without_aliases(path)


def _without_aliases(path: str) -> str:
    path = clean_path(path)
    for alias, real in _ALIASES:
        if is_below(path, alias):
            return real + path[len(alias) :]
    return path


_remembered: Final = lru_cache(maxsize=256)(_without_aliases)
