"""From what stands in a source to the value of a setting.

Pure. The file has types of its own and is taken at its word (``"3"`` is no number); variables and flags are text. All
text must be printable: a control character or a broken encoding in a path or a name is a mistake or an attack, and
what is printable can be logged and printed as TOML without loss.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_base.daemon.fields import Field

_LONGEST_SHOWN: Final = 120


class NotAllowed(ValueError):
    """The value may not stand in the setting; the caller says which and from where."""


def from_toml(field: Field, raw: object) -> object:
    """The value of `field` where the file says `raw`; raises `NotAllowed`."""
    if field.optional and raw == "":
        return None
    return _converted(field, raw, text=False)


def from_text(field: Field, text: str) -> object:
    """The value of `field` where a variable or a flag says `text`; raises `NotAllowed`."""
    if field.optional and not text:
        return None
    if field.is_list:
        return _converted(field, [item.strip() for item in text.split(",") if item.strip()], text=True)
    return _converted(field, text, text=True)


def shown(value: object) -> str:
    """`value` for a message: one printable line of bounded length."""
    try:
        line = repr(value)
    except (ValueError, RecursionError):  # an integer too long for decimal digits, a table too deep
        return "a value too large to show"
    return line if len(line) <= _LONGEST_SHOWN else line[: _LONGEST_SHOWN - 1] + "…"


def _converted(field: Field, raw: object, *, text: bool) -> object:
    try:
        value: object = msgspec.convert(raw, field.bounded, strict=not text, dec_hook=_path)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise NotAllowed from error
    for item in value if isinstance(value, tuple) else (value,):
        _refuse_odd(item)
        if field.setting.stays_below and isinstance(item, Path) and not (item.is_absolute() and ".." not in item.parts):
            raise NotAllowed
    return value


def _refuse_odd(item: object) -> None:
    if isinstance(item, float) and not math.isfinite(item):
        raise NotAllowed
    if isinstance(item, str | Path) and not str(item).isprintable():
        raise NotAllowed


def _path(kind: type, raw: Any) -> Path:  # noqa: ANN401  (whatever the file holds)
    if kind is Path and isinstance(raw, str) and raw:
        return Path(raw)
    raise ValueError("a path is a text that is not empty")
