"""Kubernetes quantities (`8Gi`, `500m`, `1e3`): the whole grammar, exact, no floats.

Upstream rounds fractions finer than a billionth away from zero and caps binary suffixes at 2^63 - 1; here nothing is
rounded, and a value that does not fit is refused: an error is better than a request that silently becomes another
number. Every quantity accepted here is accepted upstream. Refused only here: a text without any digit (`Ki`, `-` and
`.` are 0 upstream), numbers beyond 63 bits, more than 40 digits before or after the point, exponents of more than 3
digits.
"""

from __future__ import annotations

import re
from fractions import Fraction
from functools import lru_cache
from typing import Final

from partage_plugins.errors import DecodeError

_BINARY: Final = {"Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5, "Ei": 6}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_GRAMMAR: Final = re.compile(
    r"(?P<sign>[+-]?)(?=\.?[0-9])(?P<whole>[0-9]{0,40})(\.(?P<part>[0-9]{0,40}))?"
    r"((?P<suffix>[KMGTPE]i|[numkMGTPE]?)|[eE](?P<exponent>[+-]?[0-9]{1,3}))",
    re.ASCII,
)
_PLAIN: Final = re.compile(r"[0-9]{1,18}", re.ASCII)
"""The form of most amounts, which needs no `Fraction`."""
_LONGEST: Final = 96
"""Characters; no text of the grammar is longer, and longer texts are not cached."""
_LARGEST: Final = 2**63 - 1
CAPPED: Final = str(_LARGEST)
"""The API server's stored value for any larger quantity."""
ALLOWED: Final = "a quantity such as 500m, 2, 8Gi or 1e3, within 63 bits"


def parse_quantity(text: str, *, path: str = "$") -> Fraction:
    """The exact value of a quantity."""
    number = _remembered(text)
    if number is None:
        raise _refused(text, path, ALLOWED)
    return number


def parse_whole_quantity(text: str, *, path: str = "$", largest: int = _LARGEST) -> int:
    """A quantity that must be a whole number from 0 to `largest`."""
    return _whole(text, path, largest, f"a whole quantity from 0 to {largest}")


def parse_bytes(text: str, *, path: str = "$", largest: int = _LARGEST) -> int:
    """An amount of memory: bytes, from 0 to `largest`."""
    return _whole(text, path, largest, f"an amount of memory from 0 to {format_bytes(largest)}, such as 8Gi or 512Mi")


def format_bytes(number: int) -> str:
    """The shortest exact quantity with a binary suffix: 8589934592 is `8Gi`."""
    for suffix, power in reversed(_BINARY.items()):
        if number and number % (1 << 10 * power) == 0:
            return f"{number >> 10 * power}{suffix}"
    return str(number)


def _whole(text: str, path: str, largest: int, allowed: str) -> int:
    """The number, or a refusal that states what is allowed in this place."""
    number = int(text) if _PLAIN.fullmatch(text) else _remembered(text)
    if number is None or number.denominator != 1 or not 0 <= number.numerator <= largest:
        raise _refused(text, path, allowed)
    return number.numerator


def _remembered(text: str) -> Fraction | None:
    return _number(text) if len(text) <= _LONGEST else None


@lru_cache(maxsize=1 << 12)
def _number(text: str) -> Fraction | None:
    """Cached: a cluster's pods use few distinct amounts, and fractions are slow to create."""
    match = _GRAMMAR.fullmatch(text)
    if match is None:
        return None
    sign, whole, part, suffix, exponent = match.group("sign", "whole", "part", "suffix", "exponent")
    digits = int(whole + (part or "")) << 10 * _BINARY.get(suffix, 0)
    power = int(exponent or _DECIMAL.get(suffix, 0)) - len(part or "")
    above, below = (digits * 10**power, 1) if power >= 0 else (digits, 10**-power)
    if above > _LARGEST * below:
        return None
    return Fraction(-above if sign == "-" else above, below)


def _refused(text: str, path: str, allowed: str) -> DecodeError:
    return DecodeError("quantity", path=path, value=repr(text), allowed=allowed)
