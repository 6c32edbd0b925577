"""The word of a line."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.leases.line import EPOCHS, LineState, after, pack, unpack


@given(st.sampled_from(LineState), st.integers(0, EPOCHS - 1), st.integers(0, (1 << 58) - 1))
def test_what_is_packed_is_what_is_read_with_the_deadline_rounded_down(
    state: LineState, epoch: int, deadline: int
) -> None:
    word = pack(state, epoch, deadline)
    assert 0 <= word < 1 << 64
    assert unpack(word) == (state, epoch, deadline - deadline % 16384)


def test_an_empty_page_is_closed() -> None:
    assert unpack(0) == (LineState.CLOSED, 0, 0)
    assert pack(LineState.CLOSED, 0, 0) == 0


def test_the_fields_lie_where_the_library_looks_for_them() -> None:
    assert pack(LineState.FREE, 1, 16384) == 3 | 1 << 3 | 1 << 20


def test_epochs_come_round() -> None:
    assert after(EPOCHS - 1) == 0
    assert pack(LineState.LEASE, EPOCHS, 0) == pack(LineState.LEASE, 0, 0)
