"""Frames of SPDY/3.1 are read in whatever pieces they come, and never more of one than has its place in memory."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.machine.runtime.spdy import Data, Frame, FrameTooLarge, GoAway, Ping, Receiver, Reply, Reset, Sender

PING = bytes.fromhex("80030006 00000004 00000002")
FRAMES: list[tuple[bytes, Frame | None]] = [
    (Sender.data(1, b"abc"), Data(1, b"abc", is_last=False)),
    (Sender.data(3, b"", is_last=True), Data(3, b"", is_last=True)),
    (bytes.fromhex("80030002 00000004 00000001"), Reply(1)),
    (bytes.fromhex("80030004 00000004 00000000"), None),
    (bytes.fromhex("80030003 00000008 00000005 00000005"), Reset(5)),
    (bytes.fromhex("80030003 00000000"), None),
    (PING, Ping(PING)),
    (bytes.fromhex("80030007 00000008 00000000 00000000"), GoAway()),
]


@given(sent=st.lists(st.sampled_from(FRAMES)), cuts=st.lists(st.integers(1, 9)))
def test_frames_are_the_same_in_all_pieces(sent: list[tuple[bytes, Frame | None]], cuts: list[int]) -> None:
    text, receiver, got = b"".join(each for each, _ in sent), Receiver(), list[Frame]()
    for cut in cuts:
        got += receiver.feed(text[:cut])
        text = text[cut:]
    got += receiver.feed(text)
    assert got == [frame for _, frame in sent if frame is not None]


def test_a_frame_that_is_too_large_is_not_waited_for() -> None:
    with pytest.raises(FrameTooLarge):
        list(Receiver().feed(struct.pack(">II", 1, (1 << 20) + 1)))


def test_streams_have_odd_numbers_and_one_stream_of_headers() -> None:
    sender, headers, numbers = Sender(), zlib.decompressobj(), list[int]()
    for name in ("error", "stdin"):
        number, frame = sender.opening({"streamtype": name})
        numbers.append(number)
        assert frame[:4] == bytes.fromhex("80030001")
        assert int.from_bytes(frame[4:8], "big") == len(frame) - 8
        pair = struct.pack(">II", 1, 10) + b"streamtype" + struct.pack(">I", len(name)) + name.encode()
        assert headers.decompress(frame[18:]) == pair
    assert numbers == [1, 3]
