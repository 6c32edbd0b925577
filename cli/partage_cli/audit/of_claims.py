"""Claims that the DRA driver prepared here: records, CDI files, the broker's limits, the API server. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from partage_cli.audit.observation import SeenClaims, SeenHere
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import Unseen
from partage_isolation.wire.messages import BrokerReport, ContainerReport
from partage_plugins.api import CardId
from partage_plugins.api.claims import ClaimRecord, ClaimUid
from partage_plugins.api.limits import WHOLE_MILLI

_AGAIN: Final = "ask again in a minute; if it stays, delete the pods that have the claim"
_END: Final = "delete the pods that have the claim"


def claims(here: SeenHere, allocated: frozenset[ClaimUid] | None) -> Iterator[Finding]:
    """Compare them. `allocated`: claims of the API server; None if it does not list them. No claims: no findings."""
    about = About("claims")
    if isinstance(here.claims, Unseen):
        yield about.unknown(str(here.claims), do="ask again as root, on the node")
        return
    limits = None if isinstance(here.broker, Unseen) else _limits(here.broker)
    found = [
        *(about.wrong(why, do=_END) for why in here.claims.unread),
        *_of_files(about, here.claims),
        *_of_sums(about, here.claims.records),
        *(() if limits is None else _of_broker(about, here.claims.records, limits)),
        *(() if allocated is None else _of_cluster(about, here.claims.records, allocated)),
    ]
    if found or not here.claims.records:
        yield from found
        return
    unseen = [what for what, is_seen in (("the broker", limits), ("the API server", allocated)) if is_seen is None]
    without = f", as far as can be seen without {' and '.join(unseen)}" if unseen else ""
    yield about.ok(f"{len(here.claims.records)} claims are in force as they were allocated{without}")


def _limits(told: BrokerReport) -> dict[ClaimUid, ContainerReport]:
    return {ClaimUid(each.pod.uid): each for each in told.containers if each.is_claim}


def _of_files(about: About, seen: SeenClaims) -> Iterator[Finding]:
    known = {record.claim.uid for record in seen.records}
    for record in seen.records:
        if record.claim.uid not in seen.files:
            words = f"{_named(record)} has no CDI file, so no further container with it starts"
            yield about.wrong(words, do=_END)
    if not seen.unread:
        for uid in sorted(seen.files - known):
            yield about.warning(f"there is a CDI file of claim {uid}, which is not prepared", do="restart partage-dra")


def _of_sums(about: About, records: tuple[ClaimRecord, ...]) -> Iterator[Finding]:
    milli = defaultdict[CardId, int](int)
    for record in records:
        for grant in record.grants:
            milli[grant.card] += grant.share_milli
    for card, sum_ in sorted(milli.items()):
        if sum_ > WHOLE_MILLI:
            yield about.wrong(f"claims on card {card} have {sum_} milli of {WHOLE_MILLI} together", do=_END)


def _of_broker(
    about: About, records: tuple[ClaimRecord, ...], limits: dict[ClaimUid, ContainerReport]
) -> Iterator[Finding]:
    known = {record.claim.uid: record for record in records}
    for uid, record in known.items():
        granted = defaultdict[CardId, int](int)
        for grant in record.grants:
            granted[grant.card] += grant.memory_bytes
        if uid not in limits:
            if any(grant.share_milli < WHOLE_MILLI for grant in record.grants):
                yield about.wrong(f"{_named(record)} has part of a card, and no limits", do=_END)
        elif (held := {card.card: card.granted_bytes for card in limits[uid].cards}) != granted:
            yield about.wrong(f"{_named(record)} has {dict(granted)} bytes, and {held} for the broker", do=_END)
    for uid, each in limits.items():
        if uid not in known:
            yield about.warning(f"the broker has limits for claim {each.pod.name}, which is not prepared", do=_AGAIN)


def _of_cluster(about: About, records: tuple[ClaimRecord, ...], allocated: frozenset[ClaimUid]) -> Iterator[Finding]:
    for record in records:
        if record.claim.uid not in allocated and not record.is_released:
            yield about.warning(f"{_named(record)} is in force, and allocated to nobody any more", do=_AGAIN)


def _named(record: ClaimRecord) -> str:
    return f"claim {record.claim.namespace}/{record.claim.name}"
