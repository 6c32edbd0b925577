"""What the driver, its devices and their capacities are called."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from partage_plugins.vocabulary.names import CardId

DRIVER: Final = "gpu.partage.dev"
SHARE: Final = "share"
"""Capacity: milli of a card's time that are guaranteed."""
MEMORY: Final = "memory"
"""Capacity: bytes of a card."""
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_DIGITS: Final = 32


def device_name(card: CardId) -> str:
    """A DNS label, the same for the same card for ever: its id, where that is one but for its letters' case."""
    name = card.lower()
    return name if _LABEL.fullmatch(name) else f"card-{hashlib.sha256(card.encode()).hexdigest()[:_DIGITS]}"
