"""The peak memory of a pod on a card, and how much a new pod may request beside the memory that is promised."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import Role
from partage_plugins.api.card_memory import STAYS_BYTES, Amount, CardMemory, Promised, in_words, of_pod, together

UNIT = STAYS_BYTES // 2
SIZES = st.integers(0, 24).map(lambda number: number * UNIT)
ROLES: st.SearchStrategy[Role] = st.sampled_from(("app", "init", "sidecar"))
AMOUNTS = st.lists(st.builds(Amount, ROLES, SIZES, st.booleans()), max_size=6)
PROMISES = st.builds(lambda fixed, turn, more: Promised(fixed + turn + more, fixed, turn), SIZES, SIZES, SIZES)
CARDS = st.builds(CardMemory, st.integers(0, 60).map(lambda number: number * UNIT), SIZES)


def moments(amounts: Sequence[Amount]) -> Iterator[list[Amount]]:
    """The requests that run at the same time, for each phase of a pod's life."""
    yield [each for each in amounts if each.role != "init"]
    yield from (
        [each, *(other for other in amounts if other.role == "sidecar")] for each in amounts if each.role == "init"
    )


def kept(amount: Amount) -> int:
    """What stays on the card during others' time slices: of a movable container, only its contexts and code."""
    return min(amount.size_bytes, STAYS_BYTES) if amount.movable else amount.size_bytes


@given(AMOUNTS)
def test_a_pod_counts_with_the_most_of_each_that_there_is_at_one_time(amounts: list[Amount]) -> None:
    total = fixed = with_turn = 0
    for there in moments(amounts):
        stays = sum(kept(each) for each in there)
        turn = max((each.size_bytes - kept(each) for each in there), default=0)
        total = max(total, sum(each.size_bytes for each in there))
        fixed, with_turn = max(fixed, stays), max(with_turn, stays + turn)
    assert of_pod(amounts) == Promised(total, fixed, with_turn - fixed)


@given(CARDS, PROMISES, st.booleans())
def test_what_is_left_is_kept_and_a_byte_more_is_not(card: CardMemory, held: Promised, movable: bool) -> None:  # noqa: FBT001
    def keeps_beside(size: int) -> bool:
        return card.keeps(together([held, of_pod([Amount("app", size, movable)])]))

    left = card.left(held, movable=movable)
    assert keeps_beside(max(0, left)) == (left >= 0)
    assert not keeps_beside(max(0, left + 1))


@given(st.integers(0, 60 * UNIT), st.lists(AMOUNTS.map(of_pod), max_size=5))
def test_where_nothing_is_beyond_the_sum_alone_decides(has: int, pods: list[Promised]) -> None:
    assert CardMemory(has).keeps(together(pods)) == (sum(each.total for each in pods) <= has)


def test_figures_are_in_words() -> None:
    gib = 1 << 30
    promised = Promised(100 * gib, 60 * gib + (gib >> 1), 100 << 20)
    assert in_words(CardMemory(80 * gib, 40 * gib), promised) == (
        "card 80 GiB, beyond 40 GiB, promised 100 GiB, of which 60.5 GiB stay there, and a turn takes 100 MiB"
    )
