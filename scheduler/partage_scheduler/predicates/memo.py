"""Arrays derived from all nodes, cached until a node changes: equal pods need equal arrays.

A long key is stored as a digest, so memory use does not depend on its length.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final, Generic, TypeVar

import msgspec
from numpy.typing import NDArray

from partage_plugins.cache import Cache
from partage_scheduler.predicates.nodes import Nodes

A = TypeVar("A", bound=NDArray[Any])
MOST_BYTES: Final = 8 << 20
_DIGEST_BYTES: Final = 20
_SHORT: Final = 256
_TEXT: Final = msgspec.json.Encoder()


def digest(question: object) -> bytes:
    """Equal for equal questions built from API objects, and for no others."""
    return digest_of(_TEXT.encode(question))


def digest_of(text: bytes) -> bytes:
    """Equal for equal texts; a short text is its own digest."""
    return text if len(text) <= _SHORT else blake2b(text, digest_size=_DIGEST_BYTES).digest()


class Memo(Generic[A]):
    """Clears all arrays when nodes change, and evicts the least recently used above a byte limit."""

    def __init__(self, nodes: Nodes, *, most_bytes: int = MOST_BYTES) -> None:
        self._nodes = nodes
        self._version = -1
        self._answers = Cache[bytes, A](most_bytes)

    @property
    def bytes(self) -> int:
        return self._answers.bytes

    def forget(self) -> None:
        self._answers.clear()

    def of(self, question: object, answer: Callable[[], A]) -> A:
        """The returned array must not be modified."""
        if self._version != self._nodes.version:
            self._answers.clear()
            self._version = self._nodes.version
        key = digest(question)
        found = self._answers.get(key)
        if found is None:
            found = answer()
            self._answers.put(key, found, found.nbytes)
        return found
