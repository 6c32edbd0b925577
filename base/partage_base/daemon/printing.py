"""Writes the effective configuration as TOML that can be read back, each value with its origin.

Every printable text is the same in JSON and in TOML, and so are finite numbers and lists of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from partage_base.daemon.fields import Field, fields_of
from partage_base.daemon.resolving import Resolved
from partage_base.daemon.settings import CommonSettings


def as_toml(resolved: Resolved[Any], daemon: str) -> str:
    """The daemon's table with every setting."""
    return "\n".join(_lines(resolved.settings, resolved, daemon)) + "\n"


def shown_default(field: Field, default: object) -> str:
    """A default for ``--help`` and tables."""
    return "none" if field.optional and default is None else _value(default)


def _lines(settings: CommonSettings, resolved: Resolved[Any], daemon: str) -> Iterator[str]:
    yield f"[{daemon}]"
    for name in fields_of(type(settings)):
        value, origin = getattr(settings, name), _printable(resolved.origins[name])
        yield f'{name} = ""  # none; {origin}' if value is None else f"{name} = {_value(value)}  # {origin}"


def _value(value: object) -> str:
    return msgspec.json.encode(value, enc_hook=_text).decode()


def _text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{value!r} has no text form")


def _printable(origin: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in origin)
