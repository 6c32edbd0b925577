"""Decodes a watch. Pure: pieces of bytes in, lines and events out.

Memory is bounded by bytes: one line, however many large ones follow each other. Of a longer line only the beginning is
kept, by which its object is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec

from partage_base.kube.answers import decoded, refusal
from partage_base.kube.errors import HEAD_BYTES, MalformedResponse, TooLarge
from partage_base.kube.undecodable import Undecodable, undecodable, undecodable_line

T = TypeVar("T")
LONGEST_LINE_BYTES: Final = 10 << 20
"""One object: etcd's default limit is 1.5 MiB, of which the API server writes a byte such as `<` as six; plus slack."""
MOST_SKIPPED_BYTES: Final = 64 << 20
"""Limit for a longer line: no API server writes an object of that size."""
LIST_ENDS: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the last item of a streamed list."""


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """The object was created or changed; `item` is its new state."""

    item: T
    version: str = ""
    key: tuple[str, str] = ("", "")
    """Its namespace and name."""


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """The object was deleted; `item` is its last state."""

    item: T
    version: str = ""
    key: tuple[str, str] = ("", "")
    """Its namespace and name."""


class Bookmark(msgspec.Struct, frozen=True):
    """Nothing else changed up to this version."""

    version: str
    ends_list: bool = False
    """The initial list is complete: what follows are changes."""


Event = Changed[T] | Deleted[T] | Undecodable | Bookmark
"""An event of a watch."""


class Head(msgspec.Struct, frozen=True):
    """The beginning of a line that is too long, which has the form of one that names an object."""

    text: bytes


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _EventMeta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    namespace: str = ""
    name: str = ""


class _Versioned(msgspec.Struct, frozen=True):
    metadata: _EventMeta


class _Marks(msgspec.Struct, frozen=True):
    annotations: Mapping[str, str] | None = None


class _Marked(msgspec.Struct, frozen=True):
    metadata: _Marks


class Lines:
    """Splits incoming bytes into lines."""

    def __init__(self, call: str, *, longest: int = LONGEST_LINE_BYTES, most_skipped: int = MOST_SKIPPED_BYTES) -> None:
        self._call, self._longest, self._most_skipped = call, longest, most_skipped
        self._begun = bytearray()
        self._skipped = 0
        """Length so far of a line that is too long, of which only the head is kept."""

    @property
    def is_between(self) -> bool:
        """Whether the last line is complete."""
        return not self._begun

    def take(self, piece: bytes) -> list[bytes | Head]:
        """Returns the lines completed by `piece`; raises `MalformedResponse` for a long one that names none."""
        *whole, rest = piece.split(b"\n")
        lines: list[bytes | Head] = []
        for part in whole:
            line: bytes | Head = part
            if self._begun or len(part) > self._longest:
                self._add(part)
                line = self._ended()
            if isinstance(line, Head) or line.strip():
                lines.append(line)
        self._add(rest)
        return lines

    def _add(self, part: bytes) -> None:
        if not self._skipped and len(self._begun) + len(part) <= self._longest:
            self._begun += part
            return
        if not self._skipped:
            self._behead(part)
        self._skipped += len(part)
        if self._skipped > self._most_skipped:
            raise MalformedResponse(self._call, f"a line of more than {self._most_skipped} bytes")

    def _behead(self, part: bytes) -> None:
        """Keeps only the head of the current line from now on."""
        head = bytes(self._begun[:HEAD_BYTES] + part[:HEAD_BYTES])[:HEAD_BYTES]
        if undecodable_line(head, "") is None:
            raise MalformedResponse(self._call, f"a line of more than {self._longest} bytes")
        self._skipped = len(self._begun)
        self._begun = bytearray(head)

    def _ended(self) -> bytes | Head:
        line = bytes(self._begun)
        was_skipped, self._skipped = self._skipped, 0
        self._begun.clear()
        return Head(line) if was_skipped else line


def event_of(call: str, line: bytes | Head, item_type: type[T]) -> Event[T]:
    """Decodes a line; raises the error that ended the watch, such as `Gone`, or `MalformedResponse`."""
    if isinstance(line, Head):
        return _named(call, line)
    read = decoded(call, line, _Line)
    if read.type == "ERROR":
        raise refusal(call, 0, read.object)
    meta = decoded(call, read.object, _Versioned).metadata
    key = (meta.namespace, meta.name)
    match read.type:
        case "ADDED" | "MODIFIED":
            item = _item(call, read, item_type)
            return item if isinstance(item, Undecodable) else Changed(item, meta.resource_version, key)
        case "DELETED":
            item = _item(call, read, item_type)
            return item if isinstance(item, Undecodable) else Deleted(item, meta.resource_version, key)
        case "BOOKMARK":
            marks = decoded(call, read.object, _Marked).metadata.annotations or {}
            return Bookmark(meta.resource_version, ends_list=marks.get(LIST_ENDS) == "true")
        case other:
            raise MalformedResponse(call, f"an event of type {other!r}")


def _named(call: str, line: Head) -> Undecodable:
    why = "it is larger than is read"
    found = undecodable_line(line.text, why)
    if found is None:
        raise TooLarge(call, why, line.text)
    return found


def _item(call: str, read: _Line, item_type: type[T]) -> T | Undecodable:
    try:
        return decoded(call, read.object, item_type)
    except MalformedResponse as error:
        return undecodable(call, read.object, error.why, is_gone=read.type == "DELETED")


class Fold(Generic[T]):
    """The latest state of all objects in a series of events."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str], Changed[T] | Deleted[T] | Undecodable] = {}
        """Includes deleted objects, or a late event would bring them back."""

    def __len__(self) -> int:
        return len(self._last)

    def take(self, event: Changed[T] | Deleted[T] | Undecodable) -> None:
        last = self._last.get(event.key)
        if last is None or not _is_older(event.version, last.version):
            self._last[event.key] = event

    @property
    def items(self) -> tuple[T, ...]:
        return tuple(each.item for each in self._last.values() if isinstance(each, Changed))

    @property
    def undecodable(self) -> tuple[Undecodable, ...]:
        """Existing objects that can't be decoded."""
        return tuple(each for each in self._last.values() if isinstance(each, Undecodable) and not each.is_gone)


def _is_older(version: str, than: str) -> bool:
    """Versions that are not numbers have no order; then what comes later is newer."""
    return version.isdecimal() and than.isdecimal() and int(version) < int(than)
