"""Derives new inputs from old ones. Pure apart from its random generator, so that a seed reproduces a run."""

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from fuzz.engine.json_mutation import change_json
from fuzz.engine.nasty import BYTES, NUMBERS, TOKENS

MAX_BYTES: Final = 1 << 18
MAX_STACKED: Final = 5
_NUMBER: Final = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NESTS: Final = ((b"[", b"]"), (b'{"a":', b"}"), (b"(", b")"))
Change = Callable[[bytes, random.Random], bytes]
"""One random change of an input."""

_DEPTHS: Final = (1, 2, 10, 33, 100, 1_000, 20_000)


@dataclass(frozen=True)
class Mutator:
    """Changes an input in a few random ways at once."""

    rng: random.Random
    dictionary: Sequence[bytes] = ()
    change: Change | None = None
    """The target's own change, which knows the format; half of all changes."""

    def changed(self, data: bytes, corpus: Sequence[bytes]) -> bytes:
        """A variant of `data`, perhaps with a part of another entry of the corpus."""
        for _ in range(self.rng.randint(1, MAX_STACKED)):
            data = self._way(corpus)(data)[:MAX_BYTES]
        return data

    def _way(self, corpus: Sequence[bytes]) -> Callable[[bytes], bytes]:
        change = self.change
        if change is not None and self.rng.random() < 0.5:
            return lambda data: change(data, self.rng)
        return self.rng.choice(self._ways(corpus))

    def _ways(self, corpus: Sequence[bytes]) -> Sequence[Callable[[bytes], bytes]]:
        return (
            self.flip_bit,
            self.set_byte,
            self.delete_block,
            self.duplicate_block,
            self.swap_blocks,
            lambda data: self.splice(data, self.rng.choice(corpus)),
            self.insert_token,
            self.replace_number,
            self.truncate,
            self.nest,
            self.change_json,
            self.change_json,
        )

    def flip_bit(self, data: bytes) -> bytes:
        if not data:
            return data
        at = min(self._place(data), len(data) - 1)
        return data[:at] + bytes([data[at] ^ (1 << self.rng.randrange(8))]) + data[at + 1 :]

    def set_byte(self, data: bytes) -> bytes:
        """Sets one byte to any value, or to one that is special to parsers."""
        at = self._place(data)
        byte = self.rng.choice(BYTES) if self.rng.random() < 0.5 else self.rng.randrange(256)
        return data[:at] + bytes([byte]) + data[at + 1 :]

    def delete_block(self, data: bytes) -> bytes:
        start, end = self._block(data)
        return data[:start] + data[end:]

    def duplicate_block(self, data: bytes) -> bytes:
        start, end = self._block(data)
        return data[:end] + data[start:end] * self.rng.choice((1, 1, 2, 50)) + data[end:]

    def swap_blocks(self, data: bytes) -> bytes:
        start, end = self._block(data)
        middle = self.rng.randint(start, end)
        return data[:start] + data[middle:end] + data[start:middle] + data[end:]

    def splice(self, data: bytes, other: bytes) -> bytes:
        return data[: self.rng.randint(0, len(data))] + other[self.rng.randint(0, len(other)) :]

    def insert_token(self, data: bytes) -> bytes:
        """Inserts a token of the format anywhere."""
        at = self._place(data)
        own = bool(self.dictionary) and self.rng.random() < 0.5
        return data[:at] + self.rng.choice(self.dictionary if own else TOKENS) + data[at:]

    def replace_number(self, data: bytes) -> bytes:
        numbers = list(_NUMBER.finditer(data))
        if not numbers:
            return data
        found = self.rng.choice(numbers)
        return data[: found.start()] + self.rng.choice(NUMBERS) + data[found.end() :]

    def truncate(self, data: bytes) -> bytes:
        return data[: self.rng.randint(0, len(data))]

    def nest(self, data: bytes) -> bytes:
        opening, closing = self.rng.choice(_NESTS)
        depth = self.rng.choice(_DEPTHS)
        start, end = self._block(data)
        return data[:start] + opening * depth + data[start:end] + closing * depth + data[end:]

    def change_json(self, data: bytes) -> bytes:
        return change_json(data, self.rng)

    def _place(self, data: bytes) -> int:
        """Any position, or one near the beginning, where most decisions are made."""
        if self.rng.random() < 0.5:
            return self.rng.randint(0, len(data))
        return min(len(data), self.rng.randrange(1 << self.rng.randint(0, len(data).bit_length())))

    def _block(self, data: bytes) -> tuple[int, int]:
        """Start and end of a part, which is mostly short."""
        start = self._place(data)
        longest = len(data) - start
        return start, start + self.rng.randint(0, min(longest, self.rng.choice((1, 4, 16, longest))))
