"""Cards in fixed parts: which ones, and that the parts of a card never exceed the card."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_dra.parts import cuts_of
from partage_dra.settings import DraSettings
from partage_plugins.api import CardId
from partage_plugins.api.gpu import MIB
from partage_plugins.api.names import CARD_ID_PATTERN
from unit.dra.making import A, B, card


def test_the_first_entry_about_a_card_counts_and_the_rest_are_free_shares() -> None:
    cuts = cuts_of([f"{A}=2", "all=4+4"])
    assert [each.kind for each in cuts.of(card(A))] == ["1of2", "1of2"]
    assert [each.kind for each in cuts.of(card(B))] == ["1of4"] * 4
    assert cuts_of([f"{A}=2"]).of(card(B)) == ()


@pytest.mark.parametrize("text", ["", "all", "all=", "all=1", "all=17", "all=2+", "=2", "all=2,4", "all=٣", "a b=2"])
def test_what_is_written_wrongly_is_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match="allowed: a list of CARD=PARTS"):
        DraSettings(parts=(text,))


@given(st.integers(2, 16), st.integers(MIB * 16, 1 << 50), st.from_regex(CARD_ID_PATTERN, fullmatch=True))
def test_all_parts_of_a_kind_are_no_more_than_the_card_and_have_names_of_their_own(
    of: int, size: int, id_: str
) -> None:
    whole = card(CardId(id_), memory_bytes=size)
    parts = cuts_of([f"all={of}"]).of(whole)
    assert sum(each.share_milli for each in parts) <= 1000
    assert sum(each.memory_bytes(whole) for each in parts) <= size
    names = {each.device(whole.id) for each in parts}
    assert len(names) == of
    assert all(re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", name) for name in names)
