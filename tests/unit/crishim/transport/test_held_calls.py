"""The handling of a call that creates a container, frame by frame."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from functools import partial

import pytest
from hpack import Decoder, Encoder

from partage_crishim.decisions import RESTORE_POD, Code, Ending, InterceptedCall, Pass, Refuse
from partage_crishim.proxy.http2.connection_pair import ConnectionPair
from partage_crishim.proxy.http2.messages import MAX_MESSAGE_BYTES
from partage_crishim.proxy.http2.outbox import CallEnded, DecisionUnwanted, DecisionWanted, Rejected
from partage_crishim.proxy.http2.quota import Quota, QuotaLimits
from support.splice import wire
from support.splice.wire import CREATE, VERSION, Frame, Reader

Fields = Mapping[str, str]
NONE: Fields = {}


class Talk:
    """One proxied connection after both handshakes, and its output."""

    def __init__(self, limits: QuotaLimits | None = None) -> None:
        self.pair = ConnectionPair(Quota(limits))
        self.encoder, self.endings = Encoder(), list[Ending]()
        self._up, self._down = Reader(), Reader()
        self.pair.from_upstream(bytes(wire.settings()))
        self.pair.from_client(wire.PREFACE + bytes(wire.settings()))
        assert b"".join(self.pair.out.to_upstream).startswith(wire.PREFACE)
        self.pair.out.to_upstream.clear()
        self.pair.out.to_client.clear()

    def headers(self, method: str, stream: int = 1, flags: int = wire.END_HEADERS, more: Fields = NONE) -> Frame:
        return Frame(wire.HEADERS, flags, stream, self.encoder.encode(wire.request_headers(method, **more)))

    def client(self, *frames: Frame) -> None:
        self.pair.from_client(b"".join(bytes(frame) for frame in frames))

    def runtime(self, *frames: Frame) -> None:
        self.pair.from_upstream(b"".join(bytes(frame) for frame in frames))

    def create(self, body: bytes, stream: int = 1, more: Fields = NONE) -> None:
        self.client(self.headers(CREATE, stream, more=more), Frame(wire.DATA, wire.END_STREAM, stream, body))

    def up(self) -> list[Frame]:
        said = self._up.take(b"".join(self.pair.out.to_upstream))
        self.pair.out.to_upstream.clear()
        return said

    def down(self) -> list[Frame]:
        said = self._down.take(b"".join(self.pair.out.to_client))
        self.pair.out.to_client.clear()
        return said

    def call(self) -> InterceptedCall:
        (held,) = self.pair.out.events
        self.pair.out.events.clear()
        assert isinstance(held, DecisionWanted)
        return held.call

    def told(self) -> list[Ending]:
        for happening in self.pair.out.events:
            assert isinstance(happening, CallEnded)
            happening.ended(happening.ending)
        self.pair.out.events.clear()
        return self.endings

    @property
    def passing(self) -> Pass:
        return Pass(self.endings.append)


def statuses(frames: list[Frame]) -> list[tuple[str, str]]:
    """The gRPC statuses in frames that crishim wrote."""
    decoder = Decoder()
    found = [dict(wire.fields_of(decoder, frame.payload)) for frame in frames if frame.kind == wire.HEADERS]
    return [(fields["grpc-status"], fields["grpc-message"]) for fields in found]


def test_headers_go_at_once_and_the_message_after_the_verdict() -> None:
    talk = Talk()
    talk.create(wire.message(b"create"))
    assert [frame.kind for frame in talk.up()] == [wire.HEADERS]
    assert talk.call() == InterceptedCall(CREATE, b"create")
    talk.pair.decided(1, talk.passing)
    assert talk.up() == [Frame(wire.DATA, wire.END_STREAM, 1, wire.message(b"create"))]


def test_a_method_without_its_first_slash_is_held_too() -> None:
    talk = Talk()
    talk.client(talk.headers(CREATE[1:]), Frame(wire.DATA, wire.END_STREAM, 1, wire.message(b"x")))
    assert talk.call().method == CREATE


def test_the_call_that_restores_a_pod_is_held() -> None:
    talk = Talk()
    talk.client(talk.headers(RESTORE_POD), Frame(wire.DATA, wire.END_STREAM, 1, wire.message(b"x")))
    assert talk.call().method == RESTORE_POD


def test_other_calls_pass_as_the_very_object_that_came() -> None:
    talk = Talk()
    data = bytes(talk.headers(VERSION)) + bytes(Frame(wire.DATA, wire.END_STREAM, 1, wire.message(b"v")))
    talk.pair.from_client(data)
    assert talk.pair.out.to_upstream[0] is data
    assert talk.pair.methods == [VERSION]


def test_a_refused_call_is_a_reset_to_the_runtime_and_one_sentence_to_the_client() -> None:
    talk = Talk()
    talk.create(wire.message(b"create"))
    talk.pair.decided(1, Refuse(Code.FAILED_PRECONDITION, "partage: 100 % no\nfor é"))
    assert [(frame.kind, frame.stream) for frame in talk.up()] == [(wire.HEADERS, 1), (wire.RST, 1)]
    said = talk.down()
    assert statuses(said) == [("9", "partage: 100 %25 no%0Afor %C3%A9")]
    assert [frame.kind for frame in said] == [wire.WINDOW, wire.HEADERS]


def test_a_block_of_references_means_something_else_once_the_table_has_changed() -> None:
    talk, newest = Talk(), b"\x83\x86\xbe"
    for stream, block in ((1, b"\x44\x02/a"), (3, newest), (5, b"\x44\x02/b"), (7, newest)):
        talk.client(Frame(wire.HEADERS, 5, stream, block))
    assert talk.pair.methods == ["/a", "/a", "/b", "/b"]


@pytest.mark.parametrize("padding", [0, 1, 255])
@pytest.mark.parametrize("step", [1, 2, 7, 1000])
def test_a_message_in_any_pieces_padded_and_with_continued_headers(step: int, padding: int) -> None:
    talk = Talk()
    block = b"\0\0\0\x03\x10" + talk.encoder.encode(wire.request_headers(CREATE))
    said = wire.message(b"m" * 300)
    frames = [
        Frame(wire.HEADERS, wire.WITH_PRIORITY, 1, block[:9]),
        Frame(wire.CONTINUATION, 0, 1, block[9:20]),
        Frame(wire.CONTINUATION, wire.END_HEADERS, 1, block[20:]),
        Frame(wire.DATA, wire.PADDED, 1, bytes((padding,)) + said[:3] + bytes(padding)),
        Frame(wire.DATA, 0, 1, said[3:200]),
        Frame(wire.DATA, wire.PADDED | wire.END_STREAM, 1, bytes((padding,)) + said[200:] + bytes(padding)),
    ]
    data = b"".join(bytes(frame) for frame in frames)
    for at in range(0, len(data), step):
        talk.pair.from_client(data[at : at + step])
    assert talk.call() == InterceptedCall(CREATE, b"m" * 300)
    assert talk.up() == frames[:3]
    given = [frame for frame in talk.down() if frame.stream == 0]
    assert sum(frame.number for frame in given) == sum(len(frame.payload) for frame in frames[3:])


def test_a_compressed_message_is_judged_plain_and_passes_as_it_came() -> None:
    talk, packed = Talk(), gzip.compress(b"one") + gzip.compress(b" two")
    talk.create(wire.message(packed, flag=1), more={"grpc_encoding": "gzip"})
    assert talk.call().message == b"one two"
    talk.pair.decided(1, Pass())
    assert talk.up()[1].payload == wire.message(packed, flag=1)


BOMB = gzip.compress(bytes(MAX_MESSAGE_BYTES + 1))


@pytest.mark.parametrize(
    ("body", "more", "status"),
    [
        (wire.message(b"cut")[:-1], {}, "13"),
        (b"\0\0", {}, "13"),
        (b"", {}, "13"),
        (wire.message(b"a") + b"b", {}, "13"),
        (wire.message(b"a") + wire.message(b"b"), {}, "13"),
        (wire.message(b"a", flag=2), {}, "13"),
        (wire.message(b"a", flag=1), {}, "13"),
        (wire.message(b"a", flag=1), {"grpc_encoding": "identity"}, "13"),
        (wire.message(b"a", flag=1), {"grpc_encoding": "gzip"}, "13"),
        (wire.message(gzip.compress(b"abc")[:-1], flag=1), {"grpc_encoding": "gzip"}, "13"),
        (wire.message(BOMB, flag=1), {"grpc_encoding": "gzip"}, "8"),
        (wire.message(b"a", flag=1), {"grpc_encoding": "snappy"}, "12"),
        (b"\0\x01\0\0\1", {}, "8"),
    ],
)
def test_what_is_no_message_is_refused_as_a_server_would(body: bytes, more: Fields, status: str) -> None:
    talk = Talk()
    talk.create(body, more=more)
    assert [frame.kind for frame in talk.up()] == [wire.HEADERS, wire.RST]
    assert [code for code, _ in statuses(talk.down())] == [status]
    assert [type(happening) for happening in talk.pair.out.events] == [Rejected]


def test_a_message_of_the_largest_size_is_held_and_sent_within_windows() -> None:
    talk = Talk()
    message = wire.message(bytes(MAX_MESSAGE_BYTES))
    talk.client(talk.headers(CREATE))
    for at in range(0, len(message), 16384):
        last = wire.END_STREAM if at + 16384 >= len(message) else 0
        talk.client(Frame(wire.DATA, last, 1, message[at : at + 16384]))
    assert sum(frame.number for frame in talk.down() if frame.stream == 0) == len(message)
    assert len(talk.call().message) == MAX_MESSAGE_BYTES
    talk.up()
    talk.pair.decided(1, Pass())
    sent = 0
    while part := sum(len(frame.payload) for frame in talk.up()):
        assert part <= 65535
        sent += part
        talk.runtime(wire.credit(0, part), wire.credit(1, part))
    assert sent == len(message)
    assert talk.down() == [], "credits that were given before are not given again"


def test_larger_ones_are_refused_before_they_are_sent() -> None:
    talk = Talk()
    talk.client(talk.headers(CREATE), Frame(wire.DATA, 0, 1, b"\0" + (MAX_MESSAGE_BYTES + 1).to_bytes(4, "big")))
    said = talk.down()
    assert [code for code, _ in statuses(said)] == ["8"]
    assert Frame(wire.RST, 0, 1, bytes(4)) in said, "it had better stop sending"
    talk.client(Frame(wire.DATA, 0, 1, b"more"), Frame(wire.DATA, wire.END_STREAM, 1, b"and more"))
    assert [frame.kind for frame in talk.up()] == [wire.HEADERS, wire.RST]
    assert talk.down() == [wire.credit(0, 12)], "what is swallowed is credited to the connection"


def test_a_client_that_cancels_takes_its_judge_along() -> None:
    talk = Talk()
    talk.create(wire.message(b"create"))
    talk.call()
    talk.client(wire.reset(1))
    assert talk.pair.out.events == [DecisionUnwanted(1)]
    assert talk.up()[-1] == wire.reset(1)
    talk.pair.out.events.clear()
    talk.pair.decided(1, talk.passing)
    assert talk.told() == [Ending.FAILED]
    assert talk.up() == []


def test_a_runtime_that_answers_before_it_has_the_message_is_heard() -> None:
    talk = Talk()
    talk.create(wire.message(b"create"))
    talk.call()
    answer = Frame(wire.HEADERS, wire.END_HEADERS | wire.END_STREAM, 1, b"\x88")
    talk.down()
    talk.runtime(answer)
    assert talk.down() == [answer]
    assert talk.pair.out.events == [DecisionUnwanted(1)]
    assert talk.up()[-1].kind == wire.RST
    talk.pair.out.events.clear()
    talk.pair.decided(1, talk.passing)
    assert (talk.told(), talk.up()) == ([Ending.FAILED], [])


def ended(*frames: Frame, by_client: bool = False) -> list[Ending]:
    talk = Talk()
    talk.create(wire.message(b"create"))
    talk.pair.out.events.clear()
    talk.pair.decided(1, talk.passing)
    (talk.client if by_client else talk.runtime)(*frames)
    talk.told()
    talk.pair.lost("the end")
    return talk.told()


BEGIN, END = Frame(wire.HEADERS, 4, 1, b"\x88"), Frame(wire.HEADERS, 5, 1, b"\x88")
GONE = Frame(wire.GOAWAY, 0, 0, bytes(8))


@pytest.mark.parametrize(
    ("frames", "ending"),
    [
        ((BEGIN, Frame(wire.DATA, 0, 1, wire.message(b"id")), END), Ending.DONE),
        ((BEGIN, Frame(wire.DATA, 0, 1, b"\0")), Ending.DONE),
        ((BEGIN, Frame(wire.DATA, wire.END_STREAM, 1, wire.message(b"id"))), Ending.DONE),
        ((END,), Ending.FAILED),
        ((BEGIN, END), Ending.FAILED),
        ((BEGIN, Frame(wire.DATA, wire.END_STREAM, 1)), Ending.FAILED),
        ((wire.reset(1, 7),), Ending.FAILED),
        ((GONE,), Ending.FAILED),
        ((wire.reset(1, 2),), Ending.UNKNOWN),
        ((BEGIN,), Ending.UNKNOWN),
        ((), Ending.UNKNOWN),
    ],
)
def test_an_approved_call_is_told_once_how_it_ended(frames: tuple[Frame, ...], ending: Ending) -> None:
    assert ended(*frames) == [ending]


def test_a_client_that_cancels_after_the_verdict_leaves_it_unknown() -> None:
    assert ended(wire.reset(1), by_client=True) == [Ending.UNKNOWN]


def test_trailers_leave_the_runtime_a_call_without_a_message() -> None:
    talk = Talk()
    talk.client(talk.headers(CREATE), Frame(wire.DATA, 0, 1, wire.message(b"create")))
    talk.client(talk.headers("/trailers", flags=wire.END_HEADERS | wire.END_STREAM))
    assert [frame.kind for frame in talk.up()] == [wire.HEADERS, wire.HEADERS]
    assert talk.pair.out.events == []


@pytest.mark.parametrize(
    "more",
    [
        Frame(wire.DATA, 0, 1, b"more"),
        Frame(wire.HEADERS, wire.END_HEADERS, 1, b"\x88"),
        Frame(wire.HEADERS, wire.END_HEADERS | wire.END_STREAM, 1, b"\x88"),
        Frame(wire.HEADERS, 5, 4, b"\x88"),
        Frame(wire.CONTINUATION, 4, 1, b"\x88"),
        Frame(wire.PUSH, 4, 1, b"\x88"),
        Frame(wire.HEADERS, 5, 3, b"\xff\xff\xff\xff"),
        Frame(wire.DATA, wire.PADDED, 1, b"\x09"),
    ],
)
def test_what_no_client_may_say_ends_its_connection_and_passes_nothing(more: Frame) -> None:
    talk = Talk()
    talk.create(wire.message(b"create"))
    talk.call()
    talk.up()
    talk.client(more)
    assert talk.pair.is_broken
    assert talk.up() == []
    assert talk.down()[-1].kind == wire.GOAWAY
    assert talk.pair.out.events == [DecisionUnwanted(1)]


def test_calls_that_find_no_room_wait_for_those_that_have_it() -> None:
    talk = Talk(QuotaLimits(room_bytes=10_000, unasked_bytes=20_000))
    for stream in (1, 3, 5):
        talk.client(talk.headers(CREATE, stream), Frame(wire.DATA, 0, stream, wire.message(bytes(8000))[:3000]))
    credited = {frame.stream: frame.number for frame in talk.down()}
    assert credited == {0: 3000, 1: 3000}, "only the first may send more than its window"
    talk.client(wire.reset(1))
    assert talk.down() == [wire.credit(3, 3000)]


def test_too_much_that_came_unasked_is_refused() -> None:
    talk = Talk(QuotaLimits(room_bytes=10_000, unasked_bytes=5_000))
    for stream in (1, 3, 5):
        talk.client(talk.headers(CREATE, stream), Frame(wire.DATA, 0, stream, wire.message(bytes(8000))[:3000]))
    assert [code for code, _ in statuses(talk.down())] == ["8"]


@pytest.mark.parametrize("limits", [QuotaLimits(calls=2), QuotaLimits(calls_each=2)])
def test_too_many_calls_are_refused_and_the_others_go_on(limits: QuotaLimits) -> None:
    talk = Talk(limits)
    for stream in (1, 3, 5):
        talk.create(wire.message(b"create"), stream)
    assert [code for code, _ in statuses(talk.down())] == ["8"]
    assert [type(happening) for happening in talk.pair.out.events] == [DecisionWanted, DecisionWanted, Rejected]
    talk.pair.out.events.clear()
    talk.pair.decided(1, Refuse(Code.INTERNAL, "no"))
    talk.create(wire.message(b"create"), 7)
    assert talk.call().message == b"create"


def test_a_client_is_asked_to_go_and_over_when_its_calls_are() -> None:
    talk = Talk()
    talk.client(talk.headers(VERSION, flags=5))
    talk.pair.drain()
    away, ping = talk.down()
    assert (away.kind, away.number, ping.kind) == (wire.GOAWAY, 0x7FFFFFFF, wire.PING)
    talk.client(talk.headers(VERSION, 3, flags=5))
    talk.up()
    talk.client(Frame(wire.PING, wire.ACK, 0, ping.payload))
    assert (talk.up(), talk.pair.over) == ([], None), "the echo is ours"
    talk.runtime(END)
    assert [frame.kind for frame in talk.down()] == [wire.HEADERS], "the other call has no answer yet"
    talk.runtime(Frame(wire.HEADERS, 5, 3, b"\x88"))
    assert (talk.pair.over, talk.pair.is_broken) == ("drained", False)
    assert talk.down()[-1].kind == wire.GOAWAY


def test_nothing_of_ours_comes_before_the_runtimes_first_frame() -> None:
    pair, encoder = ConnectionPair(Quota()), Encoder()
    block = encoder.encode(wire.request_headers(CREATE))
    frames = [wire.settings(), Frame(wire.HEADERS, 4, 1, block), Frame(wire.DATA, 1, 1, b"nonsense")]
    pair.from_client(wire.PREFACE + b"".join(bytes(frame) for frame in frames))
    assert pair.out.to_client == []
    pair.from_upstream(bytes(wire.settings()))
    kinds = [frame.kind for frame in Reader().take(b"".join(pair.out.to_client))]
    assert kinds == [wire.SETTINGS, wire.HEADERS, wire.WINDOW]


@pytest.mark.parametrize("garbage", [b"GET / HTTP/1.1\r\n\r\n", b"\0" * 100, b"PRI * HTTP/2.0\r\n\r\nXX"])
def test_garbage_ends_the_connection_without_a_word(garbage: bytes) -> None:
    pair = ConnectionPair(Quota())
    pair.from_client(garbage)
    assert pair.is_broken
    assert (pair.out.to_client, pair.out.to_upstream) == ([], [])


def test_what_a_broken_runtime_says_ends_the_connection() -> None:
    for frame in (Frame(wire.WINDOW, 0, 0, b"\0"), wire.settings(window=1 << 31), Frame(wire.CONTINUATION, 4, 1)):
        talk = Talk()
        talk.runtime(frame)
        assert talk.pair.is_broken


def test_a_frame_without_end_is_not_kept() -> None:
    talk = Talk()
    talk.pair.from_client(b"\xff\xff\xff\0\0\0\0\0\1" + bytes(100))
    assert talk.pair.is_broken


def test_frames_may_be_as_large_as_their_receiver_says() -> None:
    talk = Talk()
    talk.runtime(wire.settings(frame=(1 << 24) - 1))
    talk.down()
    large = bytes(Frame(wire.DATA, wire.END_STREAM, 1, wire.message(bytes(5 << 20))))
    talk.client(talk.headers(CREATE))
    for at in range(0, len(large), 1 << 18):
        talk.pair.from_client(large[at : at + (1 << 18)])
    assert len(talk.call().message) == 5 << 20


def test_headers_without_end_are_not_kept() -> None:
    talk = Talk()
    talk.client(Frame(wire.HEADERS, 0, 1, b"\x88"), *[Frame(wire.CONTINUATION, 0, 1, b"") for _ in range(500)])
    assert talk.pair.is_broken


def test_what_is_told_goes_to_whom_it_concerns() -> None:
    talk, told = Talk(), list[tuple[int, Ending]]()
    for stream in (1, 3):
        talk.create(wire.message(b"create"), stream)
    talk.pair.out.events.clear()
    for stream in (1, 3):
        talk.pair.decided(stream, Pass(partial(lambda stream, ending: told.append((stream, ending)), stream)))
    talk.runtime(Frame(wire.HEADERS, 5, 3, b"\x88"))
    talk.told()
    assert told == [(3, Ending.FAILED)]
