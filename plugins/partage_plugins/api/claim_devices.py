"""Names of our DRA driver's devices and their capacities, for the driver and for the component that allocates them."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from partage_plugins.api.names import CardId

SHARE: Final = "share"
"""Capacity: guaranteed compute, in milli of a card's time."""
MEMORY: Final = "memory"
"""Capacity: bytes of a card."""
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_DIGITS: Final = 32
LONGEST: Final = 63
"""Length of a DNS label."""


def device_name(card: CardId, longest: int = LONGEST) -> str:
    """A DNS label that never changes for a card: its id in lower case if that is a label, else a digest of it."""
    name = card.lower()
    if len(name) <= longest and _LABEL.fullmatch(name):
        return name
    return f"card-{hashlib.sha256(card.encode()).hexdigest()[:_DIGITS]}"
