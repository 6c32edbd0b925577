"""What the broker is asked for one container, and what its answer changes. Pure.

Only a container that owes others something is prepared: one with whole cards needs no limits, starts without the broker
and meets nothing of ours. If it owes anything on one card, the broker hears of all its cards, since to the library a
card that was not granted has no memory at all.
"""

from __future__ import annotations

from msgspec.structs import replace

from partage_isolation.control.questions import Prepare, Prepared
from partage_plugins.vocabulary.containers import Adjustment, Container, Granted
from partage_plugins.vocabulary.gpu import GPU, GpuGrant
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_plugins.vocabulary.names import CardId


def question_for(container: Container, granted: Granted) -> Prepare | None:
    """What to ask; None where no limit is owed."""
    grants, part = granted.of(GPU), granted.part(GPU)
    if not any(GPU.promises(grant, part) for grant in grants):
        return None
    return Prepare(
        key=container.key,
        pod=container.pod,
        container=container.name,
        gen=granted.gen,
        grants=_one_for_each_card(grants),
    )


def adjustment_of(prepared: Prepared) -> Adjustment:
    """The container's changes, and what they put in force."""
    return Adjustment(mounts=prepared.mounts, enforces={GPU.name: prepared.enforces})


def _one_for_each_card(grants: tuple[GpuGrant, ...]) -> tuple[GpuGrant, ...]:
    """In their order; several of one card add up, as they do where crishim counts them."""
    cards = dict[CardId, GpuGrant]()
    for grant in grants:
        before = cards.get(grant.card)
        cards[grant.card] = grant if before is None else _together(before, grant)
    return tuple(cards.values())


def _together(one: GpuGrant, other: GpuGrant) -> GpuGrant:
    return replace(
        one,
        share_milli=min(one.share_milli + other.share_milli, WHOLE_MILLI),
        limit_milli=min(one.limit_milli + other.limit_milli, WHOLE_MILLI),
        memory_bytes=one.memory_bytes + other.memory_bytes,
    )
