"""Bytes of cards, for people. Pure."""

from __future__ import annotations

from typing import Final

_UNITS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_WHOLE_FROM: Final = 99.95


def amount(size_bytes: int | None) -> str:
    """`5.2 GiB`, `80 GiB`, `512 MiB`, `0`; a hyphen where it is not known."""
    if size_bytes is None:
        return "-"
    unit, name = next(((unit, name) for unit, name in _UNITS if size_bytes >= unit), (1, "B"))
    number = size_bytes / unit
    digits = 0 if size_bytes % unit == 0 or number >= _WHOLE_FROM else 1
    return f"{number:.{digits}f} {name}" if size_bytes else "0"


def short_id(card_id: str) -> str:
    """Enough of a card's id to tell it from others on its node: `GPU-6f0c1234`."""
    return card_id[:12]
