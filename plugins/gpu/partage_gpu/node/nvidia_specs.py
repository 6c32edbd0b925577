"""Finds and reads NVIDIA's CDI spec among the files of /etc/cdi and /var/run/cdi.

The second folder takes precedence, as for every runtime. Other vendors' files are ignored, regardless of content; one
that declares NVIDIA's kind must be readable, since guessing its content could give out another container's card.
Reading is bounded in size and never blocks: a pipe or a device under such a name is no spec. If neither folders nor
files have changed, nothing is read.
"""

from __future__ import annotations

import importlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from partage_gpu.node.stability import Facts, are_settled, facts_of
from partage_plugins.api.places import CDI_FOLDER
from partage_plugins.errors import Refused

yaml: Any = importlib.import_module("yaml")  # it has no types
STATIC_FOLDER: Final = "etc/cdi"
FOLDERS: Final = (CDI_FOLDER, STATIC_FOLDER)
"""Below the node's root, as runtimes read them."""
OUR_FILE: Final = "partage.dev-gpu.json"
LARGEST_BYTES: Final = 4 * 1024 * 1024
_BEGINNING_BYTES: Final = 64 * 1024
_SUFFIXES: Final = (".json", ".yaml")
_IS_NVIDIAS: Final = re.compile(rb"""["']?\bkind["']?\s*:\s*["']?nvidia\.com/gpu["']?\s*[,}\r\n#]""")
_OTHERS_MAY_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DEEPEST: Final = 16
_WORDS: Final[dict[str, bool | None]] = {"": None, "null": None, "~": None, "true": True, "false": False}
_INTEGER: Final = re.compile(r"-?(0|[1-9][0-9]{0,17})", re.ASCII)
_NUMBERS: Final = r"[-+]?\.?[0-9][0-9_]*(\.[0-9_]*)?(e[-+]?[0-9]+)?|0[xob][0-9a-f_]+|[-+]?\.(inf|nan)"
_OTHERS: Final = r"y|n|yes|no|on|off|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}.*|[0-9]+(:[0-9]+)+"
_AMBIGUOUS: Final = re.compile(f"{_NUMBERS}|{_OTHERS}|null|true|false", re.IGNORECASE | re.ASCII)


class Found(NamedTuple):
    """The current content of one file."""

    path: Path
    data: bytes


class NvidiaSpec:
    """NVIDIA's spec on one node, with the last result."""

    def __init__(self, *folders: Path) -> None:
        """The first folder that has one takes precedence."""
        self._folders = folders
        self._facts: dict[str, Facts] = {}
        self._found: Found | None = None

    def current(self) -> Found | None:
        """The spec from the first folder that has one; None if there is none."""
        if not self._facts or any(facts_of(path) != facts for path, facts in self._facts.items()):
            self._look()
        return self._found

    def _look(self) -> None:
        """Takes the facts before reading, so that a change in between is detected the next time."""
        self._facts, facts = {}, {str(folder): facts_of(str(folder)) for folder in self._folders}
        candidates = [_paths(folder) for folder in self._folders]
        facts |= {str(path): facts_of(str(path)) for paths in candidates for path in paths}
        settled = are_settled(facts.values())
        self._found = next(filter(None, map(_only, candidates)), None)
        self._facts = facts if settled else {}


def decoded(found: Found) -> Any:  # noqa: ANN401  any document
    """Parses the file; a `ValueError` states why it can't be read."""
    text = found.data.decode()  # a UnicodeDecodeError is a ValueError
    if found.path.suffix == ".yaml" and not text.lstrip().startswith("{"):
        return read_yaml(text)
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def read_yaml(text: str) -> Any:  # noqa: ANN401  any document
    """Parses a document as JSON would; a `ValueError` names the line of a construct that readers interpret differently.

    Nothing is guessed, and references are not allowed: a few aliases can expand to an endless document.
    """
    events = yaml.parse(text, Loader=_LOADER)
    try:
        begins = next((event for event in events if not isinstance(event, yaml.StreamStartEvent)), None)
        if not isinstance(begins, yaml.DocumentStartEvent):
            raise ValueError("nothing stands in it")  # noqa: TRY004  the text is wrong, not a type
        value = _value(next(events), events, 0)
        next(events)  # the document's end
        if not isinstance(more := next(events), yaml.StreamEndEvent):
            raise _unclear(more, "a second document")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        raise ValueError(f"line {mark.line + 1} is no YAML: {error.problem}" if mark else f"no YAML: {error}") from None
    return value


def _value(event: Any, events: Iterator[Any], depth: int) -> Any:  # noqa: ANN401
    if depth > _DEEPEST:
        raise _unclear(event, f"more than {_DEEPEST} levels")
    if isinstance(event, yaml.AliasEvent) or event.anchor is not None or event.tag is not None:
        raise _unclear(event, "an anchor, an alias or a tag")
    if isinstance(event, yaml.ScalarEvent):
        return _scalar(event)
    if isinstance(event, yaml.SequenceStartEvent):
        items: list[Any] = []
        while not isinstance(item := next(events), yaml.SequenceEndEvent):
            items.append(_value(item, events, depth + 1))
        return items
    fields: dict[str, Any] = {}
    while not isinstance(key := next(events), yaml.MappingEndEvent):
        if not isinstance(key, yaml.ScalarEvent) or key.value in fields:
            raise _unclear(key, "a key that is no text, or is there twice")
        fields[key.value] = _value(next(events), events, depth + 1)
    return fields


def _scalar(event: Any) -> str | int | bool | None:  # noqa: ANN401
    text: str = event.value
    if not event.implicit[0]:  # quoted, or a block of text
        return text
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _AMBIGUOUS.fullmatch(text):
        raise _unclear(event, f"{text!r:.80}")
    return text


def _unclear(event: Any, what: str) -> ValueError:  # noqa: ANN401
    return ValueError(f"line {event.start_mark.line + 1} has {what}, which readers take for different things")


def unusable(path: Path, why: object) -> Refused:
    """The refusal for every container while NVIDIA's spec is invalid."""
    return Refused(
        f"partage: NVIDIA's CDI spec {path} on this node can't be used: {why}; make it again there with "
        f"nvidia-ctk cdi generate --output={path}, or remove it"
    )


def _only(paths: list[Path]) -> Found | None:
    """NVIDIA's spec among the files of one folder."""
    found = [each for path in paths if (each := _nvidias(path)) is not None]
    if len(found) > 1:
        both = " and ".join(str(each.path) for each in found[:2])
        raise Refused(f"partage: {both} both describe nvidia.com/gpu on this node; remove the older one")
    return found[0] if found else None


def _paths(folder: Path) -> list[Path]:
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208  names
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in names if name.endswith(_SUFFIXES) and name != OUR_FILE]


def _nvidias(path: Path) -> Found | None:
    """The file, if it is NVIDIA's."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        try:
            status = os.fstat(descriptor)
            data = b"".join(_pieces(descriptor)) if stat.S_ISREG(status.st_mode) else b""
        finally:
            os.close(descriptor)
    except FileNotFoundError:  # removed meanwhile, or a dangling link
        return None
    except OSError as error:
        raise unusable(path, error.strerror) from None
    if not _IS_NVIDIAS.search(data[:_BEGINNING_BYTES]):
        return None
    _require_trusted(path, status, len(data))
    return Found(path, data)


def _pieces(descriptor: int) -> Iterator[bytes]:
    """The file, up to one byte more than is allowed."""
    left = LARGEST_BYTES + 1
    while left and (piece := os.read(descriptor, left)):
        left -= len(piece)
        yield piece


def _require_trusted(path: Path, status: os.stat_result, size: int) -> None:
    """Runtimes apply a spec as root, so only root may have written it."""
    if size > LARGEST_BYTES:
        raise unusable(path, f"it is larger than {LARGEST_BYTES} bytes")
    if status.st_uid not in {0, os.geteuid()} or status.st_mode & _OTHERS_MAY_WRITE:
        raise unusable(path, "others than root may write it")
