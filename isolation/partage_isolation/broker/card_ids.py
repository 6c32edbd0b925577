"""A card's id as the driver's 16 bytes. Pure."""

from __future__ import annotations

import hashlib
from uuid import UUID

from partage_plugins.vocabulary.names import CardId


def uuid_of(card: CardId) -> bytes:
    """The bytes of `GPU-…` or `MIG-…`; of another id, some that no card has."""
    try:
        return UUID(card.partition("-")[2]).bytes
    except ValueError:
        return hashlib.sha256(card.encode()).digest()[:16]


def is_mig(card: CardId) -> bool:
    """Whether it is an instance."""
    return card.startswith("MIG-")
