"""Accounting of claims on this node's cards: those on record, and those being put in force.

The API server does not check sums of consumed capacity, so they are checked here, over all claims.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from partage_base.claim_records import ClaimRecords
from partage_plugins.api.claims import ClaimRecord, ClaimUid
from partage_plugins.api.gpu import GpuGrant, GpuPart
from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.api.names import CardId
from partage_plugins.errors import DecodeError, Refused


class Taken(NamedTuple):
    share_milli: int = 0
    memory_bytes: int = 0


class Holdings:
    """All methods may raise `OSError`."""

    def __init__(self, records: ClaimRecords) -> None:
        self._records = records
        self._coming = dict[ClaimUid, tuple[GpuGrant, ...]]()

    @property
    def uids(self) -> tuple[ClaimUid, ...]:
        """All claims that containers of this node may have, including those with unreadable records."""
        return self._records.uids()

    def record(self, uid: ClaimUid) -> ClaimRecord | None:
        """The record, or None; raises `DecodeError` if it cannot be read."""
        return self._records.of(uid)

    def put(self, record: ClaimRecord) -> None:
        self._records.write(record)

    def drop(self, uid: ClaimUid) -> None:
        self._records.remove(uid)

    @contextmanager
    def reserved(self, uid: ClaimUid, grants: tuple[GpuGrant, ...], part: GpuPart) -> Generator[None]:
        """Reserve these grants while they are put in force; refuses if they exceed a card's capacity."""
        others = (grant for other in {*self.uids, *self._coming} - {uid} for grant in self._of(other))
        require_room(grants, part, others)
        self._coming[uid] = grants
        try:
            yield
        finally:
            del self._coming[uid]

    def _of(self, uid: ClaimUid) -> tuple[GpuGrant, ...]:
        if (coming := self._coming.get(uid)) is not None:
            return coming
        try:
            record = self._records.of(uid)
        except DecodeError as error:
            raise Refused(
                f"partage: the record of claim {uid:.80} on this node cannot be read, so what it has is not known: "
                f"{error}. Delete the pods that have that claim; kubelet tries again"
            ) from error
        return () if record is None else record.grants


def require_room(grants: Iterable[GpuGrant], part: GpuPart, standing: Iterable[GpuGrant]) -> None:
    """Refuse grants that exceed the capacity of a card together with the standing ones. Pure."""
    wanted, taken = _sums(grants), _sums(standing)
    for id_, mine in wanted.items():
        card, theirs = part.card(id_), taken.get(id_, Taken())
        if card is None:
            continue  # checked before
        for what, sum_, most in (
            ("milli", mine.share_milli + theirs.share_milli, WHOLE_MILLI),
            ("bytes", mine.memory_bytes + theirs.memory_bytes, card.memory_bytes),
        ):
            if sum_ > most:
                raise Refused(
                    f"partage: claims on card {id_} would have {sum_} {what} of {most} together; kubelet tries again "
                    "until others have ended. Where this stays, two allocators write claims of this driver"
                )


def _sums(grants: Iterable[GpuGrant]) -> Mapping[CardId, Taken]:
    sums = dict[CardId, Taken]()
    for grant in grants:
        before = sums.get(grant.card, Taken())
        sums[grant.card] = Taken(before.share_milli + grant.share_milli, before.memory_bytes + grant.memory_bytes)
    return sums
