"""The best nodes come one after the other, as a sort of all of them would have it; of equal ones the first by name."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.vocabulary import NodeName
from partage_scheduler.deciding.numbering import Numbering


def numbered(names: list[str]) -> Numbering:
    found = Numbering()
    for name in names:
        found.give(NodeName(name))
    return found


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), st.sampled_from((-math.inf, 0.0, 1.0, 2.5)), max_size=30),
    st.integers(1, 12),
)
def test_they_come_in_order_and_no_more_than_asked_for(scores: dict[str, float], most: int) -> None:
    numbering = numbered(list(scores))
    found = numbering.foremost(np.array(list(scores.values()), dtype=np.float32), most)
    in_order = sorted((name for name, score in scores.items() if score > -math.inf), key=lambda n: (-scores[n], n))
    assert [numbering.name(slot) for slot in found] == in_order[:most]
