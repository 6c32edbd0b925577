"""Reads the configuration file; the only place that does."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_base.daemon.errors import BadConfiguration

DEFAULT_PATH: Final = Path("etc/partage/partage.toml")  # below the root
_ENOUGH_BYTES: Final = 1 << 20


class TomlFile(msgspec.Struct, frozen=True):
    """What stands in a configuration file; without tables where there is none."""

    path: str = ""
    tables: Mapping[str, Any] = {}

    def table(self, name: str) -> Mapping[str, Any]:
        """One table; empty where it is missing or no table."""
        table = self.tables.get(name, {})
        return table if isinstance(table, dict) else {}

    def origin(self, table: str) -> str:
        """How people are told where a value of `table` stands."""
        return f"{self.path} [{table}]"


def read_toml(path: Path, *, required: bool) -> TomlFile:
    """The file at `path`; an empty one where it is missing and not `required`. Raises `BadConfiguration`."""
    try:
        return TomlFile(str(path), tomllib.loads(_text(path)))
    except FileNotFoundError as error:
        if not required:
            return TomlFile(str(path))
        raise BadConfiguration(f"cannot read {path}: there is no such file; make it, or leave --config out") from error
    except OSError as error:
        raise BadConfiguration(f"cannot read {path}: {error.strerror}; is it a file that we may read?") from error
    except UnicodeDecodeError as error:
        raise BadConfiguration(
            f"cannot read {path}: byte {error.start} is not UTF-8; save the file as UTF-8"
        ) from error
    except (ValueError, RecursionError) as error:  # of tomllib: its own, too long an integer, too deep a table
        raise BadConfiguration(f"cannot read {path} as TOML: {error}") from error


def _text(path: Path) -> str:
    with path.open("rb") as file:
        raw = file.read(_ENOUGH_BYTES + 1)
    if len(raw) > _ENOUGH_BYTES:
        raise ValueError(f"it is longer than {_ENOUGH_BYTES} bytes; is it the right file?")
    return raw.decode()
