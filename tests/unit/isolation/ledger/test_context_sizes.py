"""What a context is taken to need before it is made: what they need at least, whatever some of them take."""

from __future__ import annotations

from itertools import repeat
from typing import Final

from partage_isolation.ledger.samples import ContextSizes
from partage_plugins.vocabulary.names import CardId

CARD, TWIN, OTHER = CardId("GPU-1"), CardId("GPU-2"), CardId("GPU-3")
SMALL, LARGE = 500 << 20, 3 << 30
_MANY: Final = 1000


def learned(*sizes: int) -> ContextSizes:
    all_sizes = ContextSizes()
    for card in (CARD, TWIN):
        all_sizes.is_model(card, "H200")
    for size in sizes:
        all_sizes.learned(CARD, size)
    return all_sizes


def test_a_large_one_does_not_refuse_the_next_ones_in_small_slices() -> None:
    assert learned(SMALL, LARGE).size(CARD) == SMALL
    assert learned(*repeat(SMALL, 20), *repeat(LARGE, 10)).size(CARD) == SMALL
    assert learned(LARGE, SMALL).size(CARD) == SMALL


def test_where_all_become_larger_that_is_learned() -> None:
    """Another driver, say; and the last ones alone are kept."""
    assert learned(*repeat(SMALL, _MANY), *repeat(LARGE, 30)).size(CARD) == LARGE


def test_they_are_learned_for_all_cards_of_a_model_and_handed_to_the_next_broker() -> None:
    sizes = learned(SMALL, LARGE)
    assert (sizes.size(TWIN), sizes.size(OTHER)) == (SMALL, None)
    assert sizes.known == {"H200": SMALL}
    again = ContextSizes(sizes.known)
    again.is_model(TWIN, "H200")
    assert again.size(TWIN) == SMALL


def test_only_what_changes_the_size_is_news() -> None:
    sizes = ContextSizes()
    assert [sizes.learned(CARD, size) for size in (SMALL, SMALL, LARGE)] == [True, False, False]
