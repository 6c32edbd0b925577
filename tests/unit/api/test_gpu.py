"""The GPU kind: what a card and a grant promise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import Card, CardHealth, CardId, GpuGrant, GpuPart, GpuRequest, HealthCause
from partage_plugins.api.gpu import MIB, promises_of

CARD = Card(
    id=CardId("GPU-1"),
    index=0,
    model="NVIDIA H100 80GB HBM3",
    memory_bytes=85017493504,
    compute_capability="9.0",
    pci="0000:18:00.0",
    pool="shared",
)
PART = GpuPart(driver="580.65.06", cuda="13.0", cards=(CARD,))
WHOLE = CARD.memory_bytes


CAUSES = st.sampled_from(HealthCause)
WHY = st.text(st.characters(min_codepoint=0x20, exclude_characters="\x7f", codec="utf-8"), min_size=1)
HEALTHS = (
    st.just(CardHealth())
    | st.builds(CardHealth.degraded, CAUSES, WHY)
    | st.builds(CardHealth.lost, CAUSES, WHY | st.none())
)


@given(HEALTHS)
def test_state_cause_and_words_of_a_cards_health_survive_being_written(health: CardHealth) -> None:
    assert CARD.being(health).condition == health


@given(CAUSES, WHY)
def test_what_older_readers_know_of_a_health_stays(cause: HealthCause, why: str) -> None:
    degraded, lost = CARD.being(CardHealth.degraded(cause, why)), CARD.being(CardHealth.lost(cause, why))
    assert (degraded.health, degraded.lost_because) == (f"degraded: {why}", None)
    assert (lost.health, lost.lost_because, lost.is_lost) == ("lost", why, True)
    assert not degraded.is_allocatable


def grant(share: int, limit: int, memory: int, card: str = "GPU-1") -> GpuGrant:
    return GpuGrant(card=CardId(card), share_milli=share, limit_milli=limit, memory_bytes=memory)


@pytest.mark.parametrize(
    ("granted", "part", "promised"),
    [
        (grant(1000, 1000, WHOLE), PART, set()),
        (grant(1000, 1000, WHOLE + 1), PART, set()),
        (grant(1000, 1000, WHOLE - 1), PART, {"memory"}),
        (grant(999, 1000, WHOLE), PART, {"share"}),
        (grant(999, 999, WHOLE), PART, {"share", "limit"}),
        (grant(0, 1000, 0), PART, {"memory", "share"}),
        (grant(0, 0, 0), PART, {"memory", "share", "limit"}),
        (grant(1000, 1000, WHOLE, card="GPU-2"), PART, {"memory"}),
        (grant(1000, 1000, WHOLE), None, {"memory"}),
    ],
)
def test_whatever_is_below_a_whole_card_must_be_enforced(
    granted: GpuGrant, part: GpuPart | None, promised: set[str]
) -> None:
    assert promises_of(granted, part) == promised


@pytest.mark.parametrize(
    ("request_", "memory"),
    [
        (GpuRequest(memory_bytes=5), 5),
        (GpuRequest(memory_bytes=5, share_milli=500), 5),
        (GpuRequest(share_milli=1000), WHOLE // MIB * MIB),
        (GpuRequest(share_milli=500), 42508746752 // MIB * MIB),
        (GpuRequest(share_milli=0), 0),
    ],
)
def test_share_alone_is_the_same_fraction_of_the_memory(request_: GpuRequest, memory: int) -> None:
    assert request_.memory_on(CARD.memory_bytes) == memory


@given(st.lists(st.integers(1, 1000), min_size=1, max_size=20))
def test_shares_that_fit_on_a_card_never_need_more_memory_than_it_has(shares: list[int]) -> None:
    needed = [GpuRequest(share_milli=share).memory_on(CARD.memory_bytes) for share in shares]
    assert all(memory % MIB == 0 for memory in needed)
    if sum(shares) <= 1000:
        assert sum(needed) <= WHOLE


def test_equal_requests_have_equal_hashes() -> None:
    one, two = (GpuRequest(share_milli=500, models=("a",), cards=(CardId("b"),)) for _ in range(2))
    assert one == two
    assert hash(one) == hash(two)


@pytest.mark.parametrize(
    ("cards", "links", "why"),
    [
        ((CARD, CARD), (), "two cards have the same id"),
        ((CARD,), ((0, 0),), "links must have 1 rows and columns"),
        ((CARD,), ((0,), (0,)), "links must have 1 rows and columns"),
    ],
)
def test_a_part_that_contradicts_itself_cannot_be_made(
    cards: tuple[Card, ...], links: tuple[tuple[int, ...], ...], why: str
) -> None:
    with pytest.raises(ValueError, match=why):
        GpuPart(driver="d", cuda="c", cards=cards, links=links)


def test_a_grant_whose_limit_is_below_its_share_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="limit 499 is below share 500"):
        grant(500, 499, 0)
