"""What the devices of our DRA driver and their capacities are called: by the driver, and by who allocates them."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from partage_plugins.vocabulary.names import CardId

SHARE: Final = "share"
"""Capacity: milli of a card's time that are guaranteed."""
MEMORY: Final = "memory"
"""Capacity: bytes of a card."""
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_DIGITS: Final = 32
LONGEST: Final = 63
"""Of a label."""


def device_name(card: CardId, longest: int = LONGEST) -> str:
    """A DNS label, the same for the same card for ever: its id, where that is one but for its letters' case."""
    name = card.lower()
    if len(name) <= longest and _LABEL.fullmatch(name):
        return name
    return f"card-{hashlib.sha256(card.encode()).hexdigest()[:_DIGITS]}"
