"""HTTP/2 frames, encoded and decoded independently of the code under test."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hpack import Decoder

PREFACE: Final = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
CREATE: Final = "/runtime.v1.RuntimeService/CreateContainer"
VERSION: Final = "/runtime.v1.RuntimeService/Version"


@dataclass(frozen=True)
class Frame:
    kind: int
    flags: int
    stream: int
    payload: bytes = b""

    @property
    def number(self) -> int:
        return int.from_bytes(self.payload[:4], "big") & 0x7FFFFFFF

    @property
    def is_last(self) -> bool:
        return self.kind in (DATA, HEADERS) and bool(self.flags & END_STREAM)

    @property
    def content(self) -> bytes:
        """The payload of DATA or HEADERS without padding and priority."""
        content = self.payload
        if self.flags & PADDED:
            content = content[1 : len(content) - content[0]]
        return content[5:] if self.kind == HEADERS and self.flags & WITH_PRIORITY else content

    def __bytes__(self) -> bytes:
        head = len(self.payload).to_bytes(3, "big") + bytes((self.kind, self.flags)) + self.stream.to_bytes(4, "big")
        return head + self.payload


class Reader:
    """Splits a stream of bytes into frames."""

    def __init__(self) -> None:
        self.left = b""

    def take(self, data: bytes) -> list[Frame]:
        self.left += data
        found: list[Frame] = []
        while len(self.left) >= 9:
            end = 9 + int.from_bytes(self.left[:3], "big")
            if len(self.left) < end:
                break
            stream = int.from_bytes(self.left[5:9], "big") & 0x7FFFFFFF
            found.append(Frame(self.left[3], self.left[4], stream, self.left[9:end]))
            self.left = self.left[end:]
        return found


def settings(**values: int) -> Frame:
    numbers = {"table": 1, "window": 4, "frame": 5}
    return Frame(
        SETTINGS, 0, 0, b"".join(numbers[name].to_bytes(2, "big") + v.to_bytes(4, "big") for name, v in values.items())
    )


def credit(stream: int, size: int) -> Frame:
    return Frame(WINDOW, 0, stream, size.to_bytes(4, "big"))


def reset(stream: int, fault: int = 8) -> Frame:
    return Frame(RST, 0, stream, fault.to_bytes(4, "big"))


def message(body: bytes, *, flag: int = 0) -> bytes:
    return bytes((flag,)) + len(body).to_bytes(4, "big") + body


def request_headers(method: str, **more: str) -> list[tuple[str, str]]:
    plain = [(":method", "POST"), (":scheme", "http"), (":path", method), (":authority", "localhost")]
    return [
        *plain,
        ("content-type", "application/grpc"),
        ("te", "trailers"),
        *((k.replace("_", "-"), v) for k, v in more.items()),
    ]


def fields_of(decoder: Decoder, block: bytes) -> list[tuple[str, str]]:
    return [(str(name), str(value)) for name, value in decoder.decode(block)]
