"""The type of a daemon's settings, and the settings that all daemons have.

A daemon declares one frozen type; flags, variables, the file, ``--help`` and ``--print-config`` are made from it:

    class CrishimSettings(CommonSettings, frozen=True, kw_only=True):
        listen: Annotated[Path, Setting("Socket that kubelet is pointed to.")] = Path("/run/partage/crishim.sock")
        connect_s: Annotated[float, Meta(gt=0), Setting("Seconds to wait for containerd.")] = 2.0

A field is a str, int, float, bool, Path, Literal of texts, a tuple[T, ...] of these, or one of them or None; it has a
default and a `Setting`. `msgspec.Meta` narrows it. Constraints between two fields are checked in ``__post_init__``,
which raises ValueError with a sentence. The name ends in the unit (``_s``, ``_bytes``, ``_milli``).
"""

from __future__ import annotations

import os
import re
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

import msgspec
from msgspec import Meta

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["json", "text"]

_HOST: Final = r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+)"
_PORT: Final = r"(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})"
ADDRESS: Final = rf"^({_HOST}:{_PORT})?$"
"""`host:port`, or empty."""


class Setting(msgspec.Struct, frozen=True):
    """The documentation of one setting."""

    sentence: str  # what it is, its unit, and why the default is what it is
    allowed: str = ""  # a sentence, if the type and its Meta would not express it well
    stays_below: bool = False  # a path that must not lead out of the root that it is put under


def host_name() -> str:
    """The host's name, as kubelet uses it for the node."""
    return os.uname().nodename.strip().lower()


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of all daemons; in the file they may also be in ``[common]``."""

    node_name: Annotated[
        str,
        Meta(min_length=1, max_length=253),
        Setting("Name of this node in the cluster; by default the host's in lower case, as kubelet has it."),
    ] = msgspec.field(default_factory=host_name)
    root: Annotated[
        Path,
        Setting("Folder that all node paths are below; another than / makes a node inside a folder."),
    ] = Path("/")
    driver_root: Annotated[
        Path,
        Setting(
            "Where NVIDIA's driver is installed, below the root; that of its operator's container is found below it.",
            allowed="an absolute path without ..",
            stays_below=True,
        ),
    ] = Path("/")
    log_level: Annotated[
        LogLevel,
        Setting("Least level that is logged; info says once what changed, debug every request."),
    ] = "info"
    log_format: Annotated[
        LogFormat,
        Setting("json is one object a line, for machines; text is for eyes."),
    ] = "json"
    metrics_address: Annotated[
        str,
        Meta(pattern=ADDRESS),
        Setting(
            "Where /metrics, /healthz and /readyz are served; empty, the default, is off: no port is open unasked.",
            allowed="host:port, [IPv6 address]:port, or empty for off",
        ),
    ] = ""
    stop_deadline_s: Annotated[
        float,
        Meta(gt=0, le=3600),
        Setting("Seconds a stop may take before the process ends itself; below the 30 s after which others kill it."),
    ] = 20.0

    def below_root(self, path: Path) -> Path:
        """The location of the node's `path` under this root."""
        return self.root / path.relative_to(path.anchor)


PREFIX: Final = "PARTAGE_"
COMMON_TABLE: Final = "common"
DAEMONS: Final = (
    "advertiser",
    "agent",
    "broker",
    "crishim",
    "dra",
    "installer",
    "manager",
    "scheduler",
    "sharepods",
    "ui",
)

# Kubernetes sets these in every container for each service of its namespace: PARTAGE_SCHEDULER_PORT is an address.
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
    """One setting, with its name in each source."""

    name: str
    bounded: Any  # its type with its bounds and without None: what msgspec converts to
    plain: Any  # without bounds
    optional: bool
    common: bool
    setting: Setting
    bounds: str

    @property
    def item(self) -> Any:  # noqa: ANN401  (a type of whatever kind)
        """The type of an element if the setting is a list, else of the setting."""
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
        """The allowed texts of a Literal, else empty."""
        return get_args(self.item) if get_origin(self.item) is Literal else ()

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return "--" + self.name.replace("_", "-")

    def variables(self, daemon: str) -> tuple[str, ...]:
        """Its names in the environment; the last one wins."""
        own = f"{PREFIX}{daemon}_{self.name}".upper()
        return (f"{PREFIX}{self.name}".upper(), own) if self.common else (own,)

    @property
    def allowed(self) -> str:
        """The allowed values, as text."""
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
