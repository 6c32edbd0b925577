"""What the fields of a settings type are: their names in each source and what may stand in them.

Reads the type alone. A type that can't work is a defect of the daemon's author and raises TypeError at once: no
default, no `Setting`, an annotation that has no text form, a name that is taken.
"""

from __future__ import annotations

import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec

from partage_base.daemon.settings import CommonSettings, Setting

PREFIX: Final = "PARTAGE_"
COMMON_TABLE: Final = "common"
DAEMONS: Final = ("advertiser", "broker", "crishim", "scheduler")

# The cluster puts these into every container for each service of its namespace: PARTAGE_SCHEDULER_PORT is an address.
SERVICE_LINK: Final = re.compile(r"(^|_)(SERVICE_(HOST|PORT(_\w+)?)|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$")

_TAKEN: Final = frozenset({"check", "config", "print_config", "version", "help"})
_SCALARS: Final[Mapping[Any, str]] = {
    str: "a text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    Path: "a path",
}
_BOUNDS: Final = {
    "gt": "above {}",
    "ge": "at least {}",
    "lt": "below {}",
    "le": "at most {}",
    "multiple_of": "a multiple of {}",
    "min_length": "length at least {}",
    "max_length": "length at most {}",
    "pattern": "matching {}",
}


class Field(msgspec.Struct, frozen=True):
    """One setting, by all its names."""

    name: str
    bounded: Any  # its type with its bounds and without None: what msgspec converts to
    plain: Any  # without bounds
    optional: bool
    common: bool
    setting: Setting
    bounds: str

    @property
    def item(self) -> Any:  # noqa: ANN401  (a type of whatever kind)
        """The type of an element where the setting is a list, else of the setting."""
        return get_args(self.plain)[0] if self.is_list else self.plain

    @property
    def is_list(self) -> bool:
        """Whether it holds several values."""
        return get_origin(self.plain) is tuple

    @property
    def is_switch(self) -> bool:
        """Whether it is on or off."""
        return self.plain is bool

    @property
    def choices(self) -> tuple[str, ...]:
        """The texts that are allowed, where only some are."""
        return get_args(self.item) if get_origin(self.item) is Literal else ()

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return "--" + self.name.replace("_", "-")

    def variables(self, daemon: str) -> tuple[str, ...]:
        """Its names in the environment, the one that wins last."""
        own = f"{PREFIX}{daemon}_{self.name}".upper()
        return (f"{PREFIX}{self.name}".upper(), own) if self.common else (own,)

    @property
    def allowed(self) -> str:
        """What may stand in it, in words."""
        one = f"one of {', '.join(self.choices)}" if self.choices else _SCALARS[self.item]
        words = self.setting.allowed or ", ".join(
            filter(None, (f"a list, each {one}" if self.is_list else one, self.bounds))
        )
        return f"{words}, or empty for none" if self.optional else words


def fields_of(settings_type: type[CommonSettings]) -> dict[str, Field]:
    """The settings of a daemon by name, in the order of their declaration."""
    common = set(CommonSettings.__struct_fields__)
    infos = msgspec.structs.fields(settings_type)
    return {info.name: _field(info, common=info.name in common) for info in infos}


def _field(info: msgspec.structs.FieldInfo, *, common: bool) -> Field:
    plain, notes = _unwrapped(info.type)
    arguments = get_args(plain)
    others = [argument for argument in arguments if argument is not type(None)]
    optional = get_origin(plain) in {Union, types.UnionType} and len(others) == 1
    if optional:
        plain = others[0]
    settings = [note for note in notes if isinstance(note, Setting)]
    _refuse(info, settings)
    field = Field(info.name, Annotated[plain, *notes], plain, optional, common, settings[0], _bounds(notes))
    if not _has_text_form(field):
        raise TypeError(f"setting {info.name}: {info.type} has no text form; see {CommonSettings.__module__}")
    msgspec.json.Decoder(field.bounded)  # raises TypeError where the bounds don't fit the type
    return field


def _has_text_form(field: Field) -> bool:
    if field.is_list and get_args(field.plain)[1:] != (Ellipsis,):
        return False
    choices = get_args(field.item)
    return all(isinstance(choice, str) for choice in choices) if choices else field.item in _SCALARS


def _unwrapped(annotation: Any) -> tuple[Any, tuple[Any, ...]]:  # noqa: ANN401  (an annotation of whatever kind)
    if get_origin(annotation) is Annotated:
        plain, *notes = get_args(annotation)
        return plain, tuple(notes)
    return annotation, ()


def _refuse(info: msgspec.structs.FieldInfo, settings: list[Setting]) -> None:
    if len(settings) != 1:
        raise TypeError(f"setting {info.name}: its annotation must hold one Setting")
    if info.required:
        raise TypeError(f"setting {info.name}: it must have a default")
    if info.name in _TAKEN or SERVICE_LINK.search(info.name.upper()):
        raise TypeError(f"setting {info.name}: the name is taken, by a flag or by the cluster's service variables")


def _bounds(notes: tuple[Any, ...]) -> str:
    metas = [note for note in notes if isinstance(note, msgspec.Meta)]
    found = [(words, getattr(meta, bound)) for meta in metas for bound, words in _BOUNDS.items()]
    return ", ".join(words.format(value) for words, value in found if value is not None)
