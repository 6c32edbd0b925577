"""What a watch tells. Pure: pieces of bytes in, lines and events out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Generic, TypeVar

import msgspec

from partage_base.kube.answers import decoded, refusal
from partage_base.kube.errors import Nonsense

T = TypeVar("T")
LONGEST_LINE_BYTES: Final = 8 << 20
"""One object; etcd takes no more than a quarter of that by default."""
LIST_ENDS: Final = "k8s.io/initial-events-end"
"""The annotation of the bookmark after the last item of a list that is streamed."""


class Changed(msgspec.Struct, Generic[T], frozen=True):
    """It was made or changed; this is how it stands."""

    item: T
    version: str = ""
    key: tuple[str, str] = ("", "")
    """Its namespace and name."""


class Deleted(msgspec.Struct, Generic[T], frozen=True):
    """It is gone; this is how it last stood."""

    item: T
    version: str = ""
    key: tuple[str, str] = ("", "")
    """Its namespace and name."""


class Bookmark(msgspec.Struct, frozen=True):
    """Nothing else changed up to this version."""

    version: str
    ends_list: bool = False
    """All that there is has been told: what comes next are changes."""


Event = Changed[T] | Deleted[T] | Bookmark
"""What a watch tells."""


class _Line(msgspec.Struct, frozen=True):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    resource_version: str
    namespace: str = ""
    name: str = ""


class _Versioned(msgspec.Struct, frozen=True):
    metadata: _Meta


class _Marks(msgspec.Struct, frozen=True):
    annotations: Mapping[str, str] | None = None


class _Marked(msgspec.Struct, frozen=True):
    metadata: _Marks


class Lines:
    """Cuts what arrives into lines, however it is split on its way."""

    def __init__(self, call: str, *, longest: int = LONGEST_LINE_BYTES) -> None:
        self._call, self._longest = call, longest
        self._begun = bytearray()

    @property
    def is_between(self) -> bool:
        """Whether the last line is whole."""
        return not self._begun

    def take(self, piece: bytes) -> list[bytes]:
        """The lines that are whole now; raises `Nonsense` for one that is too long."""
        *whole, rest = piece.split(b"\n")
        if whole and self._begun:
            whole[0] = bytes(self._begun) + whole[0]
            self._begun.clear()
        self._begun += rest
        if max(len(self._begun), *map(len, whole), 0) > self._longest:
            raise Nonsense(self._call, f"a line of more than {self._longest} bytes")
        return [line for line in whole if line.strip()]


def event_of(call: str, line: bytes, item_type: type[T]) -> Event[T]:
    """What a line tells; raises what the server wrote as the end of the watch, such as `Gone`, or `Nonsense`."""
    read = decoded(call, line, _Line)
    if read.type == "ERROR":
        raise refusal(call, 0, read.object)
    meta = decoded(call, read.object, _Versioned).metadata
    key = (meta.namespace, meta.name)
    match read.type:
        case "ADDED" | "MODIFIED":
            return Changed(decoded(call, read.object, item_type), meta.resource_version, key)
        case "DELETED":
            return Deleted(decoded(call, read.object, item_type), meta.resource_version, key)
        case "BOOKMARK":
            marks = decoded(call, read.object, _Marked).metadata.annotations or {}
            return Bookmark(meta.resource_version, ends_list=marks.get(LIST_ENDS) == "true")
        case other:
            raise Nonsense(call, f"an event of type {other!r}")
