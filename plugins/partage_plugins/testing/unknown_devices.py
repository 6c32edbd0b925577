"""Makes grants of devices that a node does not have, without knowing what a kind's grants look like.

A device's name is whatever text stands both in the grants and in the inventory; the unknown name has the same shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from string import ascii_lowercase, digits

import msgspec


def with_unknown_devices(grants: bytes, part: bytes, is_valid: Callable[[bytes], bool]) -> Iterator[bytes]:
    """The grants, as JSON, once for each name in them: changed to one that the part of the inventory does not have."""
    known = _strings(part)
    for name in sorted(_strings(grants) & known):
        for unknown in _alike(name):
            changed = grants.replace(msgspec.json.encode(name), msgspec.json.encode(unknown))
            if unknown not in known and is_valid(changed):
                yield changed
                break


def _alike(name: str) -> Iterator[str]:
    """Digits become other digits, or where there is none, letters other letters; then longer names."""
    alphabet = digits if re.search("[0-9]", name) else ascii_lowercase
    for step in range(1, len(alphabet)):
        yield name.translate(str.maketrans(alphabet, alphabet[step:] + alphabet[:step]))
    for letter in alphabet:
        yield name + letter
        yield name + letter * 2


def _strings(text: bytes) -> set[str]:
    """All strings in a piece of JSON."""
    found: set[str] = set()
    waiting: list[object] = [msgspec.json.decode(text)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return found
