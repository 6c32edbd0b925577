"""What the advertiser expects to go wrong by itself; what its peers do wrong is in their rooms' trees.

PartageError
└── AdvertiserError
    └── NoInventory     plugins did not say what exists, so nothing can be told

Messages say what failed, on what, and what to do.
"""

from __future__ import annotations

from partage_plugins.errors import PartageError


class AdvertiserError(PartageError):
    """Base of them all."""


class NoInventory(AdvertiserError):
    """Plugins did not say what exists."""
