"""A client, a pair and a runtime driven by a list of numbers; every list is a valid story.

At every step both ends assert that their input is correct. At the end of a story all data is delivered and the totals
are compared: both ends' windows, messages as expected, every decision notified once, nothing left in buffers.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

from partage_crishim.decisions import Code, Ending, InterceptedCall, Pass, Refuse, Rewrite
from partage_crishim.proxy.http2.connection_pair import ConnectionPair
from partage_crishim.proxy.http2.messages import MAX_MESSAGE_BYTES
from partage_crishim.proxy.http2.outbox import CallEnded, DecisionUnwanted, DecisionWanted
from partage_crishim.proxy.http2.quota import Quota, QuotaLimits
from support.splice import wire
from support.splice.peers import WINDOW, Client, Runtime

SIZES = (0, 1, 40, 2000, 16384, 70_000, 200_000)
CHUNKS = (1, 9, 100, 4000, 20_000, 1 << 20)
LIMITS = QuotaLimits(room_bytes=300_000, unasked_bytes=150_000, calls=12, calls_each=8)


class World:
    def __init__(self, limits: QuotaLimits = LIMITS) -> None:
        self.quota = Quota(limits)
        self.pair = ConnectionPair(self.quota)
        self.client = Client()
        self.runtime = Runtime()
        self.sent: dict[int, bytes] = {}
        self.expected: dict[int, bytes] = {}
        self.questions: dict[int, InterceptedCall] = {}
        self.approved: set[int] = set()
        self.told: Counter[int] = Counter()
        self.endings: dict[int, Ending] = {}
        self._up = bytearray()
        self._down = bytearray()

    # Playing a story and checking it.

    def play(self, story: Iterator[int]) -> None:
        steps: list[Callable[[Iterator[int]], None]] = [
            *(self._open, self._open_held, self._push, self._push, self._push, self._cancel, self._credit),
            *(self._credit_call, self._answer, self._decide, self._decide),
            *(self._carry, self._carry, self._carry, self._carry, self._odd),
        ]
        for number in story:
            steps[number % len(steps)](story)
            self.check_bounds()

    def check_bounds(self) -> None:
        limits = self.quota.limits
        assert self.quota.room_taken <= max(limits.room_bytes, 2 * MAX_MESSAGE_BYTES + 5), (
            "beyond the one that may be alone"
        )
        for stream, call in self.client.calls.items():
            assert call.is_over or call.was_reset or call.window <= self.client.initial, (
                f"more credits than DATA on stream {stream}"
            )
        assert self.quota.unasked <= limits.unasked_bytes + (1 << 15), "one frame may be too much, and is then refused"

    def finish(self) -> None:
        for _ in range(2000):
            self._carry_all()
            if self.pair.over is not None:
                break
            before = self._state()
            self._everyone_goes_on()
            self._carry_all()
            if self._state() == before:
                break
        else:
            raise AssertionError("it never comes to rest")

    def check(self) -> None:
        self.check_bounds()
        assert not self.pair.is_broken, self.pair.over
        assert self.client.window == self.runtime.window == WINDOW, (self.client.window, self.runtime.window)
        assert self.quota.calls == self.quota.room_taken == self.quota.unasked == 0
        assert set(self.told) == self.approved
        assert set(self.told.values()) <= {1}
        for stream, call in self.runtime.calls.items():
            if call.is_sent and not call.was_reset:
                assert call.got == self.expected.get(stream, self.sent[stream]), f"stream {stream}"
        for stream, call in self.client.calls.items():
            assert call.is_over or call.was_reset, f"stream {stream} has no answer"
            if call.got:
                assert call.got == wire.message(b"answer %d" % stream)

    def break_off(self) -> None:
        """Break the connection in the middle of everything, and deliver decisions that are no longer needed."""
        self.pair.lost("broken off")
        late = list(self.questions)
        self._collect()
        assert not self.questions, "a verdict that nobody wants is still waited for"
        for stream in late:
            self.approved.add(stream)
            self.pair.decided(stream, Pass(partial(self._is_told, stream)))
        self._collect()
        assert self.quota.calls == self.quota.room_taken == self.quota.unasked == 0
        assert set(self.told) == self.approved
        assert set(self.told.values()) <= {1}

    # Possible steps.

    def _open(self, story: Iterator[int]) -> None:
        body = wire.message(bytes(SIZES[next(story, 0) % len(SIZES)]))
        stream = self.client.open(wire.VERSION, body, pieces=1 + next(story, 0) % 3, x_number=str(next(story, 0)))
        self.sent[stream] = body

    def _open_held(self, story: Iterator[int]) -> None:
        shape, body = next(story, 0), bytes(SIZES[next(story, 0) % len(SIZES)])
        framed, more = wire.message(body), {"grpc_timeout": f"{next(story, 0)}S"}
        match shape % 12:
            case 0:
                framed, more["grpc_encoding"] = wire.message(gzip.compress(body), flag=1), "gzip"
            case 1:
                framed, more["grpc_encoding"] = wire.message(b"no gzip", flag=1), "gzip"
            case 2:
                framed = framed[:-1]
            case 3:
                framed += b"more"
            case 4:
                framed = b"\0\x7f\0\0\0" + body
            case _:
                pass
        stream = self.client.open(wire.CREATE, framed, pieces=1 + shape % 3, **more)
        self.sent[stream] = framed

    def _push(self, story: Iterator[int]) -> None:
        if streams := [stream for stream, call in self.client.calls.items() if not call.is_sent]:
            size = CHUNKS[next(story, 0) % len(CHUNKS)]
            self.client.push(streams[next(story, 0) % len(streams)], size, padding=next(story, 0) % 5)

    def _cancel(self, story: Iterator[int]) -> None:
        if self.client.calls and next(story, 0) % 4 == 0:
            self.client.cancel(list(self.client.calls)[next(story, 0) % len(self.client.calls)])

    def _credit(self, story: Iterator[int]) -> None:
        self.runtime.credit(CHUNKS[next(story, 0) % len(CHUNKS)])

    def _credit_call(self, story: Iterator[int]) -> None:
        if self.runtime.calls:
            stream = list(self.runtime.calls)[next(story, 0) % len(self.runtime.calls)]
            self.runtime.credit_call(stream, CHUNKS[next(story, 0) % len(CHUNKS)])

    def _answer(self, story: Iterator[int]) -> None:
        """Answer mostly existing calls, and sometimes one that has ended."""
        if not self.runtime.calls:
            return
        stream, how = list(self.runtime.calls)[next(story, 0) % len(self.runtime.calls)], next(story, 0)
        if how % 8 == 0:
            self.runtime.reset(stream)
        elif how % 8 == 1:
            self.runtime.answer(stream, None)
        elif self.runtime.calls[stream].is_sent:
            self.runtime.answer(stream, b"answer %d" % stream)

    def _decide(self, story: Iterator[int]) -> None:
        if not self.questions:
            return
        stream = list(self.questions)[next(story, 0) % len(self.questions)]
        call, how = self.questions.pop(stream), next(story, 0)
        if how % 3 == 0:
            self.pair.decided(stream, Refuse(Code.FAILED_PRECONDITION, "not this one: 100 %\n"))
        else:
            self.approved.add(stream)
            ended = partial(self._is_told, stream)
            longer = b"rewritten" + call.message * (how % 2 + 1)
            if how % 3 == 1:
                self.expected[stream] = wire.message(longer)
            self.pair.decided(stream, Rewrite(longer, ended) if how % 3 == 1 else Pass(ended))
        self._collect()

    def _carry(self, story: Iterator[int]) -> None:
        which, size = next(story, 0) % 4, CHUNKS[next(story, 0) % len(CHUNKS)]
        self._carry_one(which, size)

    def _odd(self, story: Iterator[int]) -> None:
        match next(story, 0) % 16:
            case 0:
                self.runtime.widen(WINDOW + next(story, 0) * 500)
            case 1:
                self.client.send(wire.Frame(wire.PING, 0, 0, b"12345678"))
            case 2:
                self.pair.drain()
                self._collect()
            case 3:
                self.client.send(wire.Frame(wire.PRIORITY, 0, 1, bytes(5)))
            case 4:
                self.client.send(wire.Frame(0x77, 0xFF, 3, b"of a kind that nobody knows"))
            case _:
                pass

    # Delivery of data.

    def _carry_one(self, which: int, size: int) -> None:
        if self.pair.over is not None:
            return
        buffer = (self.client.out, self._up, self.runtime.out, self._down)[which]
        part = bytes(buffer[:size])
        del buffer[:size]
        if part and not (which == 0 and self.pair.is_blocked):
            (self.pair.from_client, self.runtime.receive, self.pair.from_upstream, self.client.receive)[which](part)
        elif part:
            buffer[:0] = part
        self._collect()

    def _carry_all(self) -> None:
        for _ in range(100):
            for which in range(4):
                self._carry_one(which, 1 << 30)
            if self.pair.over is not None or not (
                self._up or self._down or self.runtime.out or (self.client.out and not self.pair.is_blocked)
            ):
                return
        raise AssertionError("they never stop talking")

    def _everyone_goes_on(self) -> None:
        for stream in list(self.questions):
            self._decide(iter((list(self.questions).index(stream), 2)))
        for stream in self.client.calls:
            self.client.push(stream, 1 << 20)
        self.runtime.credit(1 << 30)
        for stream, call in self.runtime.calls.items():
            self.runtime.credit_call(stream, 1 << 30)
            if call.is_sent:
                self.runtime.answer(stream, b"answer %d" % stream)

    def _state(self) -> tuple[object, ...]:
        unsent = sum(len(call.unsent) for call in self.client.calls.values())
        over = sum(call.is_over for call in self.client.calls.values())
        got = sum(len(call.got) for call in self.runtime.calls.values())
        return self.client.window, self.runtime.window, unsent, got, over, len(self.questions), len(self.told)

    def _collect(self) -> None:
        out = self.pair.out
        self._up += b"".join(out.to_upstream)
        self._down += b"".join(out.to_client)
        out.to_upstream.clear()
        out.to_client.clear()
        for happening in out.events:
            match happening:
                case DecisionWanted(stream, call):
                    self.questions[stream] = call
                case DecisionUnwanted(stream):
                    self.questions.pop(stream, None)
                case CallEnded(ended, ending):
                    ended(ending)
                case _:
                    pass
        out.events.clear()

    def _is_told(self, stream: int, ending: Ending) -> None:
        self.told[stream] += 1
        self.endings[stream] = ending
