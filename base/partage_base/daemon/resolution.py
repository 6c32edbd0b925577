"""Resolves the value of each setting and its source.

Pure: the caller reads the file, the environment and the flags. Sources from low to high: default, ``[common]``, the
daemon's own table, ``PARTAGE_X`` (common settings only), ``PARTAGE_<DAEMON>_X``, flag. The highest source that sets a
setting wins; a mistake in a lower one is still a mistake, and all of them are reported at once.

Unknown names are refused where they can only be meant for this daemon: in its table, in ``[common]``, among the tables
of the file, and in variables that begin with ``PARTAGE_<DAEMON>_``. Other variables are ignored, since daemons, the
plugin loader and the library share an environment, and so are the variables that Kubernetes makes from service names.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, Generic, TypeVar, cast

import msgspec

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.settings import COMMON_TABLE, DAEMONS, PREFIX, SERVICE_LINK, CommonSettings, Field, fields_of

S = TypeVar("S", bound=CommonSettings)

DEFAULT: Final = "default"


class TomlFile(msgspec.Struct, frozen=True):
    """The content of a configuration file; it has no tables if there is no file."""

    path: str = ""
    tables: Mapping[str, Any] = {}

    def table(self, name: str) -> Mapping[str, Any]:
        """One table; empty if it is missing or not a table."""
        table = self.tables.get(name, {})
        return table if isinstance(table, dict) else {}

    def origin(self, table: str) -> str:
        """How messages name the place of a value of `table`."""
        return f"{self.path} [{table}]"


class Resolved(msgspec.Struct, Generic[S], frozen=True):
    """The settings, and the source of each by name."""

    settings: S
    origins: Mapping[str, str]


class _Given(msgspec.Struct, frozen=True):
    """A setting's value in one source."""

    field: Field
    raw: object
    origin: str
    text: bool

    def value(self) -> object:
        return from_text(self.field, cast("str", self.raw)) if self.text else from_toml(self.field, self.raw)

    def mistake(self) -> str:
        return f"{self.field.name} is {shown(self.raw)} in {self.origin}; allowed: {self.field.allowed}"


def resolve(
    settings_type: type[S], daemon: str, *, toml: TomlFile, environment: Mapping[str, str], flags: Mapping[str, str]
) -> Resolved[S]:
    """The settings of `daemon`; `flags` holds the texts of the flags that were given, by setting.

    Raises `BadConfiguration` with every mistake of every source.
    """
    known = fields_of(settings_type)
    mistakes = [*_unknown_in_file(known, daemon, toml), *_unknown_variables(known, daemon, environment)]
    values: dict[str, Any] = {}
    origins = dict.fromkeys(known, DEFAULT)
    for given in _given(known, daemon, toml=toml, environment=environment, flags=flags):
        try:
            values[given.field.name] = given.value()
            origins[given.field.name] = given.origin
        except BadValue:
            mistakes.append(given.mistake())
    if mistakes:
        raise BadConfiguration(*mistakes)
    return Resolved(_made(settings_type, values), origins)


def allowed_values(
    settings_type: type[S], daemon: str, *, toml: TomlFile, environment: Mapping[str, str], flags: Mapping[str, str]
) -> dict[str, Any]:
    """The valid value of each setting from its highest source that has one; mistakes are ignored."""
    values: dict[str, Any] = {}
    for given in _given(fields_of(settings_type), daemon, toml=toml, environment=environment, flags=flags):
        with contextlib.suppress(BadValue):
            values[given.field.name] = given.value()
    return values


def _made(settings_type: type[S], values: Mapping[str, Any]) -> S:
    try:
        return settings_type(**values)
    except ValueError as error:
        raise BadConfiguration(f"settings that don't go together: {error}") from error


def _given(
    known: Mapping[str, Field], daemon: str, *, toml: TomlFile, environment: Mapping[str, str], flags: Mapping[str, str]
) -> Iterator[_Given]:
    """All given values, from the lowest source to the highest."""
    for table in (COMMON_TABLE, daemon):
        for name, raw in toml.table(table).items():
            if name in known:
                yield _Given(known[name], raw, toml.origin(table), text=False)
    for field in known.values():
        for variable in field.variables(daemon):
            if variable in environment:
                yield _Given(field, environment[variable], variable, text=True)
        if field.name in flags:
            yield _Given(field, flags[field.name], field.flag, text=True)


def _unknown_in_file(known: Mapping[str, Field], daemon: str, toml: TomlFile) -> Iterator[str]:
    tables = sorted({COMMON_TABLE, daemon, *DAEMONS})
    for name, table in toml.tables.items():
        if name not in tables:
            yield f"{toml.path}: unknown table or key {shown(name)}{_nearest(name, tables)}"
        elif not isinstance(table, dict):
            yield f"{toml.path}: {name} is {shown(table)}; allowed: a table, written [{name}]"
    common = [name for name, field in known.items() if field.common]
    for table, allowed in ((COMMON_TABLE, common), (daemon, list(known))):
        for key in toml.table(table):
            if key not in allowed:
                yield f"{toml.origin(table)}: unknown key {shown(key)}{_nearest(key, allowed)}"


def _unknown_variables(known: Mapping[str, Field], daemon: str, environment: Mapping[str, str]) -> Iterator[str]:
    names = [name for field in known.values() for name in field.variables(daemon)]
    own = f"{PREFIX}{daemon}_".upper()
    for name in sorted(environment):
        if name.startswith(own) and name not in names and not SERVICE_LINK.search(name):
            yield f"unknown variable {name}{_nearest(name, names)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    nearest = get_close_matches(name, known, n=1)
    return f"; did you mean {nearest[0]}?" if nearest else f"; known: {', '.join(known)}"


_LONGEST_SHOWN: Final = 120


class BadValue(ValueError):
    """The value is not allowed for the setting; the caller adds the setting and the source."""


def from_toml(field: Field, raw: object) -> object:
    """The value of `field` for `raw` in the file; raises `BadValue`."""
    if field.optional and raw == "":
        return None
    return _converted(field, raw, text=False)


def from_text(field: Field, text: str) -> object:
    """The value of `field` for `text` of a variable or flag; raises `BadValue`."""
    if field.optional and not text:
        return None
    if field.is_list:
        return _converted(field, [item.strip() for item in text.split(",") if item.strip()], text=True)
    return _converted(field, text, text=True)


def shown(value: object) -> str:
    """`value` as one printable line of bounded length, for a message."""
    try:
        line = repr(value)
    except (ValueError, RecursionError):  # an integer too long for decimal digits, a table too deep
        return "a value too large to show"
    return line if len(line) <= _LONGEST_SHOWN else line[: _LONGEST_SHOWN - 1] + "…"


def _converted(field: Field, raw: object, *, text: bool) -> object:
    try:
        value: object = msgspec.convert(raw, field.bounded, strict=not text, dec_hook=_path)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise BadValue from error
    for item in value if isinstance(value, tuple) else (value,):
        _refuse_odd(item)
        if field.setting.stays_below and isinstance(item, Path) and not (item.is_absolute() and ".." not in item.parts):
            raise BadValue
    return value


def _refuse_odd(item: object) -> None:
    if isinstance(item, float) and not math.isfinite(item):
        raise BadValue
    if isinstance(item, str | Path) and not str(item).isprintable():
        raise BadValue


def _path(kind: type, raw: Any) -> Path:  # noqa: ANN401  (whatever the file holds)
    if kind is Path and isinstance(raw, str) and raw:
        return Path(raw)
    raise ValueError("a path is a text that is not empty")
