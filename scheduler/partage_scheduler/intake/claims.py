"""Claims on devices: what is said of them goes to who counts what they hold, and wakes pods that wait for them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from partage_base.kube.unread import Unread
from partage_scheduler.cluster import Cause, Cluster
from partage_scheduler.intake.others import Clock
from partage_scheduler.objects import ApiResourceClaim
from partage_scheduler.queue import Queue
from partage_scheduler.versions import Versions

_CLAIM: Final = frozenset((Cause.CLAIM,))
_FREED: Final = frozenset((Cause.CLAIM, Cause.FREED))


class ResourceClaimIntake:
    """A claim that can't be read holds what it held: its cards are in use all the same."""

    def __init__(self, cluster: Cluster, queue: Queue, *, clock: Clock) -> None:
        self._book, self._queue, self._clock = cluster.claims, queue, clock
        self._seen = Versions()
        self._known: dict[str, ApiResourceClaim] = {}

    def listed(self, items: Iterable[ApiResourceClaim], unread: Sequence[Unread] = (), /) -> None:
        claims = {item.uid: item for item in items}
        there = claims.keys() | {each.uid for each in unread}
        for uid in [uid for uid in self._known if uid not in there]:
            self.gone(self._known[uid])
        for claim in claims.values():
            self.changed(claim)

    def changed(self, item: ApiResourceClaim) -> None:
        """Told by the watch, or by the answer to what was written just now: the newer one counts."""
        if self._seen.is_news(item.uid, item.metadata.resource_version):
            self._known[item.uid] = item
            self._queue.happened(_FREED if self._book.put(item) else _CLAIM, self._clock())

    def gone(self, item: ApiResourceClaim) -> None:
        self._seen.gone(item.uid)
        self._known.pop(item.uid, None)
        self._queue.happened(_FREED if self._book.remove(item) else _CLAIM, self._clock())

    def unread(self, which: Unread) -> None:
        known = self._known.get(which.uid)
        if which.is_gone and known is not None:
            self.gone(known)
