"""If a page would exceed its rows, the rows of the source with the most are dropped."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from partage_base.daemon.fairness import fair_part

ROWS = st.lists(st.sampled_from("abcde"), max_size=60)


def test_one_with_many_rows_takes_no_room_from_others() -> None:
    assert Counter(fair_part("a" * 100 + "bb" + "c", 10, str)) == {"a": 7, "b": 2, "c": 1}


@given(ROWS, st.integers(0, 60))
def test_all_room_is_used_and_nobody_is_cut_below_what_another_has(rows: list[str], most: int) -> None:
    shown, wanted = Counter(fair_part(rows, most, str)), Counter(rows)
    assert shown.total() == min(len(rows), most)
    cut = [shown[owner] for owner in wanted if shown[owner] < wanted[owner]]
    assert not cut or max(shown.values(), default=0) <= min(cut) + 1
