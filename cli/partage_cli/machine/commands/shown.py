"""Containers that hold a share, for people and programs. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from partage_cli.tables import amount, printable, short_id, table
from partage_isolation.wire.messages import ContainerReport
from partage_oci.messages import Held
from partage_plugins.api.engines import engine_key

_SHORT: Final = 12
_NONE: Final = "-"
_HEADER: Final = ("ID", "NAME", "IMAGE", "SHARE", "LIMIT", "MEMORY", "USED", "CARD", "STATUS")


class SharingContainer(Struct, frozen=True, kw_only=True):
    """A container with its share; amounts are sums over its cards."""

    id: str
    name: str | None
    image: str | None
    share_milli: int
    limit_milli: int
    memory_bytes: int
    used_bytes: int | None
    """None if the broker does not know it."""
    cards: tuple[str, ...]
    status: str
    kept_s: int | None


def sharing(
    held: Iterable[Held], told: Iterable[ContainerReport], named: Mapping[str, tuple[str, str]]
) -> tuple[SharingContainer, ...]:
    """Combine the agent's grants with the broker's limits, which may have been lowered since."""
    by_key = {each.key: each for each in told}
    found = list[SharingContainer]()
    for each in held:
        known = by_key.get(engine_key(each.id, each.n))
        name, image = named.get(each.id, (None, None))
        limits = [(one.share_milli, one.limit_milli, one.limit_bytes) for one in known.cards] if known else []
        if not limits:
            limits = [(one.share_milli, one.limit_milli, one.memory_bytes) for one in each.grants]
        share, limit, memory = map(sum, zip(*limits, strict=True))
        found.append(
            SharingContainer(
                id=each.id,
                name=name,
                image=image,
                share_milli=share,
                limit_milli=limit,
                memory_bytes=memory,
                used_bytes=sum(one.charged_bytes for one in known.cards) if known else None,
                cards=tuple(dict.fromkeys(one.card for one in each.grants)),
                status=each.stage,
                kept_s=None if each.kept_s is None else round(each.kept_s),
            )
        )
    return tuple(found)


def sharing_table(containers: Iterable[SharingContainer], indices: Mapping[str, int]) -> str:
    """`indices` are the known indices of cards."""
    rows = (
        (
            each.id[:_SHORT],
            printable(each.name or _NONE),
            printable(each.image or _NONE),
            str(each.share_milli),
            str(each.limit_milli),
            amount(each.memory_bytes),
            amount(each.used_bytes),
            ",".join(str(indices.get(card, short_id(card))) for card in each.cards),
            f"kept {each.kept_s} s for a restart" if each.kept_s is not None else each.status,
        )
        for each in containers
    )
    return table(_HEADER, rows)
