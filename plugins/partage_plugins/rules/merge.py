"""Merges several plugins' changes to one container; every changed field has an owner.

Plugins that set a field to the same value share it; if they set different values, the error names both plugins and the
field, never the values (they may be secret). Nothing depends on the order of plugins.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from partage_plugins.api.containers import Adjustment
from partage_plugins.api.keys import ALLOC_PREFIX
from partage_plugins.api.kinds import Promise
from partage_plugins.api.names import Kind, PluginName
from partage_plugins.errors import AdjustmentConflict, PluginNonsense

HOOK: Final = "partage_adjust"
Field = tuple[str, ...]
"""A field and its key: `("env", "PATH")`, `("mounts", "/lib/x.so")`; for a single value just its name."""
Owners = Mapping[str, tuple[PluginName, ...]]
"""The plugins that set each field, written `env PATH`: more than one if they agree."""
_NOTHING: Final = Adjustment()
_MERGED: Final = tuple(name for name in Adjustment.__struct_fields__ if name != "enforces")
"""All fields that are set in a container: a new field of an adjustment is merged like the others."""


def merge(answers: Sequence[tuple[PluginName, Adjustment]]) -> tuple[Adjustment, Owners]:
    """Merges all adjustments into one, with the owners of its fields; raises the first conflict between two of them."""
    values: dict[Field, Any] = {}
    owners: dict[Field, tuple[PluginName, ...]] = {}
    for plugin, answer in answers:
        for field, value in _fields(plugin, answer):
            if field in values and values[field] != value:
                why = f"both set {' '.join(field)}, to different values; block one of them"
                raise AdjustmentConflict(f"{owners[field][0]} and {plugin}", HOOK, why)
            values[field] = value
            owners[field] = (*owners.get(field, ()), plugin)
    adjustment = _adjustment(values, _enforces(answer for _, answer in answers))
    return adjustment, {" ".join(field): names for field, names in owners.items()}


def checked(plugin: PluginName, answer: object) -> Adjustment | None:
    """A plugin's result with every value checked against its type; None if it changes nothing."""
    if answer is None:
        return None
    if not isinstance(answer, Adjustment):
        raise PluginNonsense(plugin, HOOK, f"returned {type(answer).__name__}; allowed: an Adjustment or None")
    try:
        return msgspec.convert(msgspec.to_builtins(answer), Adjustment)
    except (msgspec.ValidationError, TypeError, ValueError) as error:
        raise PluginNonsense(plugin, HOOK, "returned an Adjustment with a wrong value", str(error)) from None


def _fields(plugin: PluginName, answer: Adjustment) -> list[tuple[Field, Any]]:
    """Splits an adjustment into fields with owners: mapping entries, tuple items, and single values that are set."""
    found: list[tuple[Field, Any]] = []
    for name in _MERGED:
        value = getattr(answer, name)
        if isinstance(value, Mapping):
            found.extend(((name, key), each) for key, each in value.items())
        elif isinstance(value, tuple):
            found.extend(((name, str(getattr(each, "container_path", each))), each) for each in value)
        elif value is not None:
            found.append(((name,), value))
    seen: set[Field] = set()
    for field, _ in found:
        if field in seen:
            raise PluginNonsense(plugin, HOOK, f"sets {' '.join(field)} twice")
        if field[0] == "annotations" and field[-1].startswith(ALLOC_PREFIX):
            raise PluginNonsense(plugin, HOOK, f"sets annotation {field[-1]}; {ALLOC_PREFIX} belongs to partage")
        seen.add(field)
    return found


def _adjustment(values: Mapping[Field, Any], enforces: Mapping[Kind, tuple[Promise, ...]]) -> Adjustment:
    parts: dict[str, Any] = {}
    for (name, *key), value in values.items():
        if key:
            parts.setdefault(name, {})[key[0]] = value
        else:
            parts[name] = value
    made: dict[str, Any] = {
        name: tuple(part.values()) if isinstance(getattr(_NOTHING, name), tuple) else part
        for name, part in parts.items()
    }
    return Adjustment(**made, enforces=enforces)


def _enforces(answers: Iterable[Adjustment]) -> dict[Kind, tuple[Promise, ...]]:
    together: dict[Kind, set[Promise]] = {}
    for answer in answers:
        for kind, promises in answer.enforces.items():
            together.setdefault(kind, set()).update(promises)
    return {kind: tuple(sorted(promises)) for kind, promises in sorted(together.items())}
