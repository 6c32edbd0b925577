"""Which containers are to be cleaned up after. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from partage_crishim.rules.holdings import Listing, Reservation
from partage_plugins.vocabulary import ContainerKey


def gone(
    adjusted: Iterable[ContainerKey], listing: Listing, reservations: Iterable[Reservation]
) -> tuple[ContainerKey, ...]:
    """Keys that plugins adjusted, that the runtime no longer lists, and whose create is not in flight.

    Right only with a listing that began no earlier than the horizon of these reservations, and keys that were known
    before it began.
    """
    kept = listing.keys.union(each.held.key for each in reservations)
    return tuple(key for key in adjusted if key not in kept)
