"""The simple form: an author answers for one node, the host gets arrays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import PodRequest, Slot
from partage_plugins.per_node import PerNode
from support.sides import request, scheduler_side, slots

VERDICTS = st.dictionaries(st.integers(0, 500), st.sampled_from([None, "too small", "too old"]), min_size=1)


class Simple(PerNode):
    """Answers from a table."""

    table: dict[int, str | None]

    def why_not(self, request: PodRequest, slot: Slot) -> str | None:
        return self.table[slot]

    def score(self, request: PodRequest, slot: Slot) -> float:
        return slot / 1000


@given(VERDICTS)
def test_arrays_say_what_each_node_was_told(table: dict[int, str | None]) -> None:
    side = scheduler_side(simple=type("Told", (Simple,), {"table": table}))
    asked = slots(*table)
    verdict = side.fits(request(), asked)
    codes, reasons = verdict.reasons()
    said = [None if fits else str(reasons[code]) for fits, code in zip(verdict.fits, codes, strict=True)]
    assert said == list(table.values())
    assert [round(float(score) * 1000) for score in side.scores(request(), asked)] == list(table)


def test_no_nodes_are_no_answers() -> None:
    side = scheduler_side(simple=type("Told", (Simple,), {"table": {}}))
    assert side.fits(request(), slots()).fits.shape == (0,)
    assert side.scores(request(), slots()).shape == (0,)
