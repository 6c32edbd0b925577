"""The settings in a node's file, limited to known settings: numbers, switches, choices, paths and names."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from partage_base.daemon.resolution import BadValue, TomlFile, from_toml
from partage_base.daemon.settings import COMMON_TABLE, CommonSettings, Field, fields_of
from partage_base.daemon.sources import DEFAULT_PATH, read_toml

_TYPES: Final[Mapping[str, str]] = {
    COMMON_TABLE: "partage_base.daemon.settings:CommonSettings",
    "advertiser": "partage_advertiser.settings:AdvertiserSettings",
    "agent": "partage_oci.settings:AgentSettings",
    "broker": "partage_isolation.settings:BrokerSettings",
    "crishim": "partage_crishim.settings:CrishimSettings",
    "dra": "partage_dra.settings:DraSettings",
    "installer": "partage_cli.rollout.installer.settings:InstallerSettings",
    "scheduler": "partage_scheduler.settings:SchedulerSettings",
}
_NAMES: Final = frozenset(("metrics_address", "namespace", "node_name", "scheduler_name"))
"""Text settings whose values are no secret on the node or in the cluster."""
_TEXT: Final = "(a text, which is not told)"
_NOT_ALLOWED: Final = "(not allowed there)"


def settings_told(root: Path) -> dict[str, object]:
    """Settings by table; unknown keys are only counted. Raises `BadConfiguration`."""
    toml = read_toml(root / DEFAULT_PATH, required=False)
    return {table: _table(toml, table) for table in _TYPES if table in toml.tables}


def _table(toml: TomlFile, table: str) -> dict[str, object]:
    module, _, name = _TYPES[table].partition(":")
    kind: type[CommonSettings] = getattr(importlib.import_module(module), name)
    fields, given = fields_of(kind), toml.table(table)
    told: dict[str, object] = {key: _value(fields[key], raw) for key, raw in given.items() if key in fields}
    unknown = len(given.keys() - fields.keys())
    return told | ({"(unknown keys)": unknown} if unknown else {})


def _value(field: Field, raw: Any) -> object:  # noqa: ANN401  (whatever the file holds)
    try:
        value = from_toml(field, raw)
    except BadValue:
        return _NOT_ALLOWED
    if field.item is str and field.name not in _NAMES:
        return _TEXT if value else value
    return (
        [str(each) for each in value] if isinstance(value, tuple) else str(value) if isinstance(value, Path) else value
    )
