"""Frames between the two processes arrive unchanged, however they are split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.host.messages import Done, TooLarge, decode_reply, framed, taken

FRAMES = st.lists(st.integers(0, 1 << 31).map(lambda number: framed(Done(id=number))), max_size=5)


@given(FRAMES, st.integers(1, 40))
def test_frames_come_out_in_order_whatever_the_pieces(frames: list[bytes], size: int) -> None:
    stream, incoming, bodies = b"".join(frames), bytearray(), list[bytes]()
    for start in range(0, len(stream), size):
        incoming += stream[start : start + size]
        while (body := taken(incoming)) is not None:
            bodies.append(body)
    assert [framed(decode_reply(body)) for body in bodies] == frames
    assert not incoming


def test_a_frame_that_is_not_whole_stays() -> None:
    incoming = bytearray(framed(Done(id=1))[:-1])
    before = bytes(incoming)
    assert taken(incoming) is None
    assert incoming == before


def test_a_frame_beyond_the_bound_is_refused_before_it_has_come() -> None:
    with pytest.raises(TooLarge, match="a frame of 11 bytes"):
        taken(bytearray((11).to_bytes(4, "big")), at_most=10)
