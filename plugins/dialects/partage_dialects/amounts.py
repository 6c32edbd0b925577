"""Exact amounts in the notations of other systems: whole numbers, and decimals with thousandths.

Kubernetes quantities (`500m`, `8Gi`) are parsed by `partage_plugins.codecs`; these systems do not support them. Floats
are never used, so a text has the same thousandths everywhere. NaN and infinity are not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import ROUND_CEILING, Context, Decimal
from functools import lru_cache
from typing import Final

from partage_plugins.errors import DecodeError

LARGEST: Final = 2**62
_LONGEST: Final = 64
"""Characters; no number is longer, and longer texts are not cached."""
_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?([0-9]{1,20}(\.[0-9]{0,20})?|\.[0-9]{1,20})([eE][+-]?[0-9]{1,2})?", re.ASCII)
_EXACT: Final = Context(prec=256, rounding=ROUND_CEILING)


def refused(key: str, value: str | None, allowed: str) -> DecodeError:
    """The error for one key of a pod; None stands for a missing key."""
    return DecodeError("request", path=key, value="not there" if value is None else repr(value), allowed=allowed)


def read_whole(said: Mapping[str, str], key: str, *, allowed: str, largest: int = LARGEST) -> int:
    """Parses a whole number from 0 to `largest`."""
    text = said.get(key)
    number = _whole(text) if text and len(text) <= _LONGEST else None
    if number is None or not 0 <= number <= largest:
        raise refused(key, text, allowed)
    return number


def read_decimal(said: Mapping[str, str], key: str, *, allowed: str, largest: int) -> Decimal:
    """Parses a decimal number from 0 to `largest`."""
    text = said.get(key)
    number = _decimal(text) if text and len(text) <= _LONGEST else None
    if number is None or not 0 <= number <= largest:
        raise refused(key, text, allowed)
    return number


@lru_cache(maxsize=1 << 10)
def milli(number: Decimal) -> int:
    """Its thousandths, rounded up, so that no one gets less than is written."""
    return int(_EXACT.to_integral_value(_EXACT.scaleb(number, 3)))


@lru_cache(maxsize=1 << 10)
def _whole(text: str) -> int | None:
    return int(text) if _WHOLE.fullmatch(text) else None


@lru_cache(maxsize=1 << 10)
def _decimal(text: str) -> Decimal | None:
    return Decimal(text) if _DECIMAL.fullmatch(text) else None
