"""Memory that a shrunk container still holds is granted to no other one, and a higher gen takes nothing away."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from partage_isolation.errors import SpecRefused
from partage_isolation.ledger.budget import CardSpec
from partage_isolation.store.specs import Spec
from partage_isolation.wire.limits import Held, require_returned
from partage_plugins.api.names import CardId, ContainerKey, ContainerName, Namespace, PodName, PodUid
from partage_plugins.api.pods import PodRef

CARD, OTHER = CardId("GPU-1"), CardId("GPU-2")
B = ContainerKey("b" * 32)
GIB = 1 << 30


def spec(gib: int, **more: Any) -> Spec:
    card = CardSpec(id=CARD, memory=gib * GIB, share=100, limit=1000, **more)
    pod = PodRef(namespace=Namespace("team"), name=PodName("p"), uid=PodUid("u"))
    return Spec(key=B, pod=pod, container=ContainerName("main"), gen=1, cards=(card,), library="")


def asked(  # noqa: PLR0913 - what differs between tests
    mine: Spec, granted: int, held: int, *, most: int = 8, known: Spec | None = None, card: CardId = CARD
) -> None:
    """Request `mine` on a card of 10 GiB, beside a container that was granted and holds these amounts."""
    there = CardSpec(id=card, memory=granted * GIB, share=100, limit=1000, most=most * GIB)
    require_returned(mine, known, [Held(there, held * GIB)], lambda _card: 10 * GIB)


def test_what_is_still_held_above_a_lower_grant_is_not_given_away() -> None:
    with pytest.raises(SpecRefused, match="was to be given back"):
        asked(spec(4), granted=4, held=7)
    with pytest.raises(SpecRefused):
        asked(spec(4), granted=4, held=7, known=spec(2))


def test_it_is_given_once_it_is_back_or_where_there_is_room_beside_it() -> None:
    asked(spec(6), granted=4, held=4)
    asked(spec(3), granted=4, held=7)
    asked(spec(4), granted=4, held=7, card=OTHER)


def test_who_asks_for_no_more_and_who_moves_wait_for_nobody() -> None:
    asked(spec(6), granted=4, held=7, known=spec(6))
    asked(replace(spec(6, movable=True)), granted=4, held=7)


def test_who_was_never_shrunk_keeps_nobody_out() -> None:
    asked(spec(6), granted=4, held=5, most=4)
