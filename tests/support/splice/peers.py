"""A client and a runtime that follow HTTP/2, and assert that the other side does.

Each computes flow-control windows by itself. It is an assertion error to send beyond a window, on a stream that has
ended, or headers that can't be decoded with the correct dynamic table.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hpack import Decoder, Encoder

from support.splice import wire
from support.splice.wire import Frame, Reader

WINDOW = 65535
MAX_WINDOW = (1 << 31) - 1


@dataclass
class Call:
    window: int
    unsent: bytes = b""
    is_sent: bool = False
    is_over: bool = False
    was_reset: bool = False
    headers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    got: bytes = b""
    uncredited: int = 0


class Peer:
    def __init__(self, preface: bytes) -> None:
        self.window = WINDOW
        self.initial = WINDOW
        self.calls: dict[int, Call] = {}
        self.out = bytearray(preface + bytes(wire.settings()))
        self._reader = Reader()
        self._encoder = Encoder()
        self._decoder = Decoder()

    def send(self, frame: Frame) -> None:
        self.out += bytes(frame)


class Client(Peer):
    def __init__(self) -> None:
        super().__init__(wire.PREFACE)
        self.is_told_to_go = False
        self._is_first = True
        self._next = 1

    def open(self, method: str, body: bytes, *, pieces: int = 1, **more: str) -> int:
        stream, self._next = self._next, self._next + 2
        self.calls[stream] = Call(self.initial, unsent=body)
        block = self._encoder.encode(wire.request_headers(method, **more))
        cuts = [len(block) * each // pieces for each in range(pieces + 1)]
        for piece in range(pieces):
            flags = wire.END_HEADERS if piece == pieces - 1 else 0
            kind = wire.CONTINUATION if piece else wire.HEADERS
            self.send(Frame(kind, flags, stream, block[cuts[piece] : cuts[piece + 1]]))
        return stream

    def push(self, stream: int, size: int, *, padding: int = 0) -> None:
        """Send up to `size` bytes of a request, as windows allow."""
        call = self.calls[stream]
        if call.is_sent or call.was_reset:
            return
        room = max(0, min(self.window, call.window, 16384))
        cost = padding + 1 if padding else 0
        size = min(size, len(call.unsent), room - cost)
        if size < 0 or (size == 0 and call.unsent):
            return
        part, call.unsent = call.unsent[:size], call.unsent[size:]
        payload = bytes((padding,)) + part + bytes(padding) if padding else part
        self.window -= len(payload)
        call.window -= len(payload)
        call.is_sent = not call.unsent
        flags = (wire.END_STREAM if call.is_sent else 0) | (wire.PADDED if padding else 0)
        self.send(Frame(wire.DATA, flags, stream, payload))

    def cancel(self, stream: int) -> None:
        call = self.calls[stream]
        if not call.was_reset and not (call.is_over and call.is_sent):
            call.was_reset = True
            self.send(wire.reset(stream))

    def receive(self, data: bytes) -> None:
        for frame in self._reader.take(data):
            assert not self._is_first or frame.kind == wire.SETTINGS, "the first frame is no SETTINGS"
            self._is_first = False
            self._take(frame)

    def _take(self, frame: Frame) -> None:
        call = self.calls.get(frame.stream)
        match frame.kind:
            case wire.SETTINGS if not frame.flags & wire.ACK:
                self._set(frame)
            case wire.WINDOW:
                assert len(frame.payload) == 4
                assert frame.number > 0, "a credit of nothing"
                self._credit(frame, call)
            case wire.HEADERS:
                assert call is not None
                fields = wire.fields_of(self._decoder, frame.payload)
                if not call.is_over and not call.was_reset:
                    call.headers += fields
            case wire.DATA if call is not None and not call.is_over and not call.was_reset:
                call.got += frame.payload
            case wire.RST:
                assert call is not None
                call.was_reset = True
            case wire.PING if not frame.flags & wire.ACK:
                self.send(Frame(wire.PING, wire.ACK, 0, frame.payload))
            case wire.GOAWAY:
                self.is_told_to_go = True
            case _:
                pass
        if frame.is_last and call is not None:
            call.is_over = True

    def _set(self, frame: Frame) -> None:
        for at in range(0, len(frame.payload), 6):
            name, value = (
                int.from_bytes(frame.payload[at : at + 2], "big"),
                int.from_bytes(frame.payload[at + 2 : at + 6], "big"),
            )
            if name == 4:
                for call in self.calls.values():
                    call.window += value - self.initial
                self.initial = value
            elif name == 1:
                self._encoder.header_table_size = value
        self.send(Frame(wire.SETTINGS, wire.ACK, 0))

    def _credit(self, frame: Frame, call: Call | None) -> None:
        if frame.stream == 0:
            self.window += frame.number
            assert self.window <= MAX_WINDOW
        else:
            assert call is not None
            call.window += frame.number
            assert call.window <= MAX_WINDOW


class Runtime(Peer):
    def __init__(self) -> None:
        super().__init__(b"")
        self.uncredited = 0
        self.methods: dict[int, str] = {}
        self._preface = b""
        self._block: tuple[Frame, bytes] | None = None

    def receive(self, data: bytes) -> None:
        missing = len(wire.PREFACE) - len(self._preface)
        self._preface += data[:missing]
        assert wire.PREFACE.startswith(self._preface)
        for frame in self._reader.take(data[missing:] if missing > 0 else data):
            self._take(frame)

    def credit(self, size: int) -> None:
        size = min(size, self.uncredited)
        if size:
            self.uncredited -= size
            self.window += size
            self.send(wire.credit(0, size))

    def credit_call(self, stream: int, size: int) -> None:
        call = self.calls[stream]
        size = min(size, call.uncredited)
        if size and not call.is_sent and not call.was_reset:
            call.uncredited -= size
            call.window += size
            self.send(wire.credit(stream, size))

    def answer(self, stream: int, body: bytes | None) -> None:
        """Answer with a message, or with an error if `body` is None."""
        call = self.calls[stream]
        if call.is_over or call.was_reset:
            return
        call.is_over = True
        if body is not None:
            self.send(self._headers(stream, [(":status", "200"), ("x-of", str(stream))], 0))
            self.send(Frame(wire.DATA, 0, stream, wire.message(body)))
            self.send(self._headers(stream, [("grpc-status", "0")], wire.END_STREAM))
        else:
            self.send(
                self._headers(
                    stream, [(":status", "200"), ("grpc-status", "2"), ("x-of", str(stream))], wire.END_STREAM
                )
            )

    def reset(self, stream: int) -> None:
        call = self.calls[stream]
        if not call.is_over and not call.was_reset:
            call.is_over = True
            self.send(wire.reset(stream))

    def widen(self, size: int) -> None:
        """Only widen the window: a narrower one would have to tolerate data in flight."""
        more = size - self.initial
        if more > 0:
            self.initial = size
            for call in self.calls.values():
                call.window += more
            table = size // 16  # changes together with it
            self._decoder.max_allowed_table_size = max(self._decoder.max_allowed_table_size, table)
            self.send(wire.settings(window=size, table=table))

    def _headers(self, stream: int, fields: list[tuple[str, str]], flags: int) -> Frame:
        return Frame(wire.HEADERS, wire.END_HEADERS | flags, stream, self._encoder.encode(fields))

    def _take(self, frame: Frame) -> None:
        if self._block is not None:
            first, block = self._block
            assert frame.kind == wire.CONTINUATION, "something breaks into a header block"
            assert frame.stream == first.stream
            self._opened(first, block + frame.payload, is_whole=bool(frame.flags & wire.END_HEADERS))
        elif frame.kind == wire.HEADERS:
            self._opened(frame, frame.payload, is_whole=bool(frame.flags & wire.END_HEADERS))
        elif frame.kind == wire.DATA:
            self._data(frame)
        elif frame.kind == wire.RST:
            self.calls[frame.stream].was_reset = True
        elif frame.kind == wire.PING and not frame.flags & wire.ACK:
            self.send(Frame(wire.PING, wire.ACK, 0, frame.payload))

    def _opened(self, first: Frame, block: bytes, *, is_whole: bool) -> None:
        self._block = None if is_whole else (first, block)
        if is_whole:
            fields = wire.fields_of(self._decoder, block)
            assert first.stream not in self.calls
            self.calls[first.stream] = Call(self.initial, headers=fields, is_sent=first.is_last)
            self.methods[first.stream] = dict(fields)[":path"]

    def _data(self, frame: Frame) -> None:
        size, call = len(frame.payload), self.calls[frame.stream]
        assert not call.was_reset, "DATA after a reset"
        assert not call.is_sent, "DATA after the end"
        self.window -= size
        self.uncredited += size
        call.window -= size
        call.uncredited += size
        assert self.window >= 0, "beyond the connection's window"
        assert call.window >= 0, "beyond the stream's window"
        call.got += frame.content
        call.is_sent = frame.is_last
