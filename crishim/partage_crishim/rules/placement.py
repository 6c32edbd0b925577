"""Where things may lie: volumes must not meet what we put in, and our sources must be what they say. Pure.

A volume at, above or below one of our paths would let the container's owner exchange or hide what enforces limits. An
image can still lead elsewhere by links of its own; against that the broker looks at what was really mounted.

The runtime makes a missing source as an empty folder, even for a library, and follows links wherever they lead. So what
a plugin names must be there, and end below a folder that the operator allows; a device must be one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from partage_base.cri.create_request import RequestMount
from partage_crishim.rules.errors import PlacementRefused
from partage_plugins.rules.paths import clean_path, is_below
from partage_plugins.vocabulary import Adjustment, PluginName
from partage_plugins.vocabulary.containers import LONGEST_PATH

IN_CONTAINER: Final = "/run/partage"
"""Where the broker's socket and the library appear in a container."""
Owners = Mapping[str, tuple[PluginName, ...]]
"""Which plugins set a field, as `partage_plugins.rules.merge` names fields."""
_ALIASES: Final = (("/var/run", "/run"),)  # links of nearly every image


@dataclass(frozen=True)
class PathTarget:
    """What a path leads to in the end."""

    real_path: str
    kind: Literal["device", "other"]


FileLookup = Callable[[str], PathTarget | None]
"""What a path of the node leads to with all links followed; None where nothing is."""


@dataclass(frozen=True, kw_only=True)
class Roots:
    """Below which folders, with all links followed, a source may lie."""

    mounts: tuple[str, ...]
    devices: tuple[str, ...]


def require_apart(mounts: Iterable[RequestMount], places: Iterable[str]) -> None:
    """Refuses a request that mounts at, above or below a path of ours."""
    ours = (IN_CONTAINER, *places)
    for mount in mounts:
        for path in ours:
            if _meet(_cleaned(mount.container_path), _cleaned(path)):
                raise PlacementRefused(
                    f"partage: the container mounts a volume at {mount.container_path!a:.200}, which meets {path} "
                    "of its grant; mount the volume elsewhere"
                )


def require_sources(adjustment: Adjustment, owners: Owners, files: FileLookup, roots: Roots) -> None:
    """Refuses mounts and devices that are not there, not what they must be, or lead where they may not."""
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


def _meet(one: str, other: str) -> bool:
    return is_below(one, other) or is_below(other, one)


def _cleaned(path: str) -> str:
    return _remembered(path) if len(path) <= LONGEST_PATH else _without_aliases(path)


def _without_aliases(path: str) -> str:
    path = clean_path(path)
    for alias, real in _ALIASES:
        if is_below(path, alias):
            return real + path[len(alias) :]
    return path


_remembered: Final = lru_cache(maxsize=256)(_without_aliases)
