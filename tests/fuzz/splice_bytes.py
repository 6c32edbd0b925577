"""For any bytes from either side, in any pieces: nothing is raised, only whole frames pass, memory is bounded.

Each approval of a call is followed by its outcome, even if the connection ends.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from hpack import Encoder

from partage_crishim.decisions import Code, Decision, Ending, Pass, Refuse, Rewrite
from partage_crishim.proxy.http2.connection_pair import ConnectionPair
from partage_crishim.proxy.http2.outbox import CallEnded, DecisionUnwanted, DecisionWanted
from partage_crishim.proxy.http2.quota import Quota, QuotaLimits
from partage_crishim.proxy.http2.unavailable import UnavailableResponder
from support.splice import wire
from support.splice.wire import Frame, Reader

_LIMITS: Final = QuotaLimits(room_bytes=4000, unasked_bytes=2000, calls=4, calls_each=3)
_KEPT_BYTES: Final = 2 * ((1 << 20) + (1 << 17))
"""For each side: a header block of the largest size, and data that came with its end. No input is longer."""
_HELD: Final = _LIMITS.calls_each + 256
"""Including calls that were answered while the client still sends."""


def _piece(side: int, *frames: Frame, preface: bytes = b"") -> bytes:
    """A record of the input: the side that sends, a length, and the bytes."""
    said = preface + b"".join(bytes(frame) for frame in frames)
    return bytes((side,)) + len(said).to_bytes(2, "big") + said


def _headers(stream: int, method: str, encoder: Encoder, flags: int = wire.END_HEADERS) -> Frame:
    return Frame(wire.HEADERS, flags, stream, encoder.encode(wire.request_headers(method, grpc_timeout="119S")))


def _conversation(method: str) -> bytes:
    encoder = Encoder()
    opened = [wire.settings(), _headers(1, method, encoder), Frame(wire.DATA, 1, 1, wire.message(b"abc"))]
    answered = [
        Frame(wire.HEADERS, 4, 1, b"\x88"),
        Frame(wire.DATA, 0, 1, wire.message(b"d")),
        Frame(wire.HEADERS, 5, 1, b"\x88"),
    ]
    more = [_headers(3, method, encoder), Frame(wire.DATA, 8, 3, b"\1" + wire.message(b"abc") + b"\0"), wire.reset(3)]
    return b"".join(
        (
            _piece(0, *opened, preface=wire.PREFACE),
            _piece(1, wire.settings(window=70000, table=5000), wire.credit(0, 100), wire.credit(1, 10), *answered),
            _piece(0, *more),
            _piece(1, Frame(wire.GOAWAY, 0, 0, bytes(8))),
        )
    )


SEEDS: Final = (_conversation(wire.VERSION), _conversation(wire.CREATE), b"\0\0\4GET ", _piece(1, wire.settings()))
DICTIONARY: Final = (
    wire.PREFACE,
    *(bytes(Frame(kind, flags, 1)) for kind in range(10) for flags in (0, 1, 4, 5, 8, 0x2D)),
    bytes(wire.credit(0, 0x7FFFFFFF)),
    bytes(wire.settings(window=0x7FFFFFFF)),
    wire.message(b"", flag=1),
)


class _Story:
    def __init__(self) -> None:
        self.quota = Quota(_LIMITS)
        self.pair = ConnectionPair(self.quota)
        self.verdicts: list[Decision] = []
        self.waiting: list[int] = []
        self.owed = 0
        self._up, self._down = Reader(), Reader()
        self._preface = b""

    def told(self, _: Ending) -> None:
        self.owed -= 1
        if self.owed < 0:
            raise AssertionError("told twice")

    def decide(self, how: int) -> None:
        if self.waiting:
            ended = self.told
            verdict = (Pass(ended), Rewrite(b"new", ended), Refuse(Code.INTERNAL, "é\n%"))[how % 3]
            self.owed += how % 3 < 2
            self.pair.decided(self.waiting.pop(0), verdict)

    def collect(self) -> None:
        out = self.pair.out
        up = b"".join(out.to_upstream)
        missing = len(wire.PREFACE) - len(self._preface)
        self._preface += up[:missing]
        self._up.take(up[missing:] if missing > 0 else up)
        self._down.take(b"".join(out.to_client))
        if self._up.left or self._down.left:
            raise AssertionError("half a frame passed")
        out.to_upstream.clear()
        out.to_client.clear()
        self.pair.methods.clear()
        for happening in out.events:
            match happening:
                case DecisionWanted(stream, _):
                    self.waiting.append(stream)
                case DecisionUnwanted(stream):
                    self.waiting.remove(stream)
                case CallEnded(ended, ending):
                    ended(ending)
                case _:
                    pass
        out.events.clear()

    def check_memory(self) -> None:
        if self.pair.kept_bytes > _KEPT_BYTES or self.pair.held_calls > _HELD or self.quota.calls > _LIMITS.calls:
            raise AssertionError("too much is kept")


def target(data: bytes) -> str:
    """Records of a side, a length and bytes; a side beyond the two is a decision or a drain."""
    story, unavailable, at = _Story(), UnavailableResponder("away"), 0
    act: dict[int, Callable[[], None]] = {side: partial(story.decide, side) for side in (2, 3, 4)}
    act[5] = story.pair.drain
    while at + 3 <= len(data):
        side, size = data[at] % 6, int.from_bytes(data[at + 1 : at + 3], "big")
        if side < 2:
            part = data[at + 3 : at + 3 + size]
            (story.pair.from_client, story.pair.from_upstream)[side](part)
            unavailable.from_client(part)
            at += size
        else:
            act[side]()
        at += 3
        story.collect()
        story.check_memory()
    story.pair.lost("the end")
    story.collect()
    if story.owed or story.quota.calls or story.quota.room_taken or story.quota.unasked:
        raise AssertionError("something is kept, or somebody was not told")
    return str(story.pair.over)
