"""The meaning of a CreateContainer request, read without our schema: requests with the same meaning are equal.

Parts of one message are merged, the last of several single values counts, and fields without a name here are kept, in
order among those of their number. Paths are field numbers from the request down.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from fuzz.engine.wire_mutation import Field, read

Path = tuple[int, ...]

_VARINT: Final = 0
_BYTES: Final = 2
ENV: Final[Path] = (2, 6)
MOUNTS: Final[Path] = (2, 7)
ANNOTATIONS: Final[Path] = (2, 10)
_ENTRIES: Final[Mapping[Path, int]] = {
    ENV: 2,
    MOUNTS: 3,
    (2, 8): 3,
    ANNOTATIONS: 2,
    (2, 17): 1,
    (3, 6): 2,
    (3, 7): 2,
}
"""Lists of small messages, and the number of values in each."""
_MESSAGES: Final = frozenset(
    ((2,), (3,), (2, 1), (2, 2), (2, 15), (3, 1), (3, 8), (2, 15, 1), (2, 15, 2), (3, 8, 2))
) | frozenset(((2, 15, 2, 1), (2, 15, 2, 3), (3, 8, 2, 1)))
_TEXTS: Final = frozenset(
    ((1,), (2, 1, 1), (2, 2, 1), (2, 2, 18), (2, 15, 2, 3, 4), (3, 1, 1), (3, 1, 2), (3, 1, 3), (3, 8, 2, 1, 4))
)
_NUMBERS: Final = frozenset(((2, 1, 2), (2, 15, 2, 3, 2), (3, 8, 2, 1, 2), (2, 15, 1, 10)))
_FLAGS: Final = frozenset(((2, 15, 2, 2), (2, 7, 3)))


@dataclass
class Said:
    single: dict[Path, int | bytes] = field(default_factory=dict[Path, int | bytes])
    rest: dict[Path, list[Field]] = field(default_factory=dict[Path, list[Field]])
    """Fields without a name here, and lists of plain values."""
    entries: dict[Path, list[Said]] = field(default_factory=dict[Path, "list[Said]"])

    def but(self, changed: Mapping[Path, Callable[[bytes], bool]]) -> tuple[object, ...]:
        """Everything except entries of these lists whose first value, a key or a path, may be changed."""
        entries = {
            path: [each for each in found if path not in changed or not changed[path](each.key(path))]
            for path, found in self.entries.items()
        }
        return self.single, self.rest, {path: found for path, found in entries.items() if found}

    def key(self, path: Path) -> bytes:
        value = self.single.get((*path, 1), b"")
        return value if isinstance(value, bytes) else b""


def said(message: bytes) -> Said:
    """The meaning of a message; raises `NoMessage`."""
    found = Said()
    _take(read(message), (), found)
    return found


def _take(fields: Sequence[Field], above: Path, found: Said) -> None:
    for each in fields:
        path = (*above, each.number)
        if isinstance(each.value, bytes) and each.type == _BYTES and path in _MESSAGES:
            _take(read(each.value), path, found)
        elif isinstance(each.value, bytes) and each.type == _BYTES and path in _ENTRIES:
            entry = Said()
            _take(read(each.value), path, entry)
            found.entries.setdefault(path, []).append(entry)
        elif _is_single(path, each):
            found.single[path] = bool(each.value) if path in _FLAGS else each.value
        else:
            found.rest.setdefault(path, []).append(each._replace(padding=0))


def _is_single(path: Path, each: Field) -> bool:
    if each.type == _VARINT:
        return path in _NUMBERS or path in _FLAGS
    return each.type == _BYTES and (path in _TEXTS or (each.number <= _values(path[:-1]) and path not in _FLAGS))


def _values(path: Path) -> int:
    return _ENTRIES.get(path, 0)


def keys_of(found: Said, path: Path) -> Iterator[bytes]:
    return (each.key(path) for each in found.entries.get(path, ()))
