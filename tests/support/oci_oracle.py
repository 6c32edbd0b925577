"""A reference implementation of partage-oci's changes to a config.json, in Python on the parsed content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

MOST_DEPTH: Final = 64
NVIDIA: Final = 195
_PATHS: Final = ("dev/nvidia", "dev/dxg", "run/nvidia-", "var/run/nvidia-")
_DYNAMIC: Final = (*range(234, 255), *range(384, 512))
IsCard = Callable[[Any], bool]
_VARIABLES: Final = ("PARTAGE_", "DOCKER_RESOURCE_PARTAGE")


def parsed(content: bytes) -> Any:
    """Raises ValueError for invalid JSON, including constants that only Python accepts."""

    def refuse(word: str) -> Any:
        raise ValueError(word)

    try:
        return json.loads(content.decode(), parse_constant=refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def asks(config: Any) -> bool:
    """Whether our keys or variables are in it."""
    variables = _list(_member(_member(config, "process"), "env"))
    keys = _dict(_member(config, "annotations"))
    return any(isinstance(one, str) and one.startswith(_VARIABLES) and "=" in one for one in variables) or any(
        key.startswith("partage.dev/") for key in keys
    )


def cleaned(config: Any) -> Any:
    """The configuration without cards."""
    if not isinstance(config, dict):
        return config
    numbers = _kernel() | {
        node["major"]
        for node in _list(_member(_member(config, "linux"), "devices"))
        if _is_path(_member(node, "path")) and _is_int(_member(node, "major")) and node["major"] in _DYNAMIC
    }

    def is_numbered(entry: Any) -> bool:
        number = _member(entry, "major")
        return _member(entry, "type") != "b" and _is_int(number) and number in numbers

    def is_node(entry: Any) -> bool:
        return _is_path(_member(entry, "path")) or is_numbered(entry)

    def is_rule(entry: Any) -> bool:
        return _member(entry, "allow") is True and is_numbered(entry)

    changed = dict(config)
    if "linux" in config:
        changed["linux"] = _linux(config["linux"], is_node, is_rule)
    if "mounts" in config:
        changed["mounts"] = _without(config["mounts"], _is_mount)
    if isinstance(config.get("hooks"), dict):
        changed["hooks"] = {when: _without(listed, _is_hook) for when, listed in config["hooks"].items()}
    return changed


def _linux(part: Any, is_node: IsCard, is_rule: IsCard) -> Any:
    if not isinstance(part, dict):
        return part
    changed = dict(part)
    if "devices" in part:
        changed["devices"] = _without(part["devices"], is_node)
    resources = part.get("resources")
    if isinstance(resources, dict) and "devices" in resources:
        changed["resources"] = resources | {"devices": _without(resources["devices"], is_rule)}
    return changed


def _is_mount(entry: Any) -> bool:
    return _is_path(_member(entry, "source")) or _is_path(_member(entry, "destination"))


def _is_hook(entry: Any) -> bool:
    named = [_member(entry, "path"), *_list(_member(entry, "args"))]
    return any(isinstance(one, str) and one.rpartition("/")[2].startswith("nvidia-") for one in named)


def _is_path(value: Any) -> bool:
    if not isinstance(value, str):
        return False
    parts = list[str]()
    for part in value.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts).startswith(_PATHS)


def _kernel() -> set[int]:
    listed = Path("/proc/devices").read_text()
    return {NVIDIA, *map(int, re.findall(r"^ *(\d+) nvidia", listed, re.MULTILINE))}


def _without(value: Any, is_card: IsCard) -> Any:
    return [entry for entry in value if not is_card(entry)] if isinstance(value, list) else value


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_int(value: Any) -> bool:
    return type(value) is int
