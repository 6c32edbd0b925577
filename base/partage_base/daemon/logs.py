"""Logging to stderr, one event a line, for our code and for libraries.

JSON with ``ts`` (RFC 3339, UTC, microseconds), ``level``, ``event``, ``daemon``, then bound values
(`structlog.contextvars` for a task: pod, container) and the event's own, and ``traceback`` for an exception. An event
is a fixed phrase with its variables as values; never log a whole environment or all annotations. Logging never raises:
a value without a JSON form is written as its repr, and a line that can't be written is dropped and counted (``lost``).

A reader that is slow, gone or full must not stop a process that kubelet depends on. So a line that can't be written is
dropped, and the next one that is written reports how many were. No thread and no O_NONBLOCK (the descriptor may be
shared with others): poll(2) promises room for PIPE_BUF bytes in a pipe and for more in a socket, so pieces of that size
don't block.
"""

from __future__ import annotations

import json
import logging
import os
import select
import sys
import threading
import time
import traceback
from collections.abc import Callable, Hashable, Mapping, MutableMapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import msgspec
import structlog

from partage_base.daemon.settings import LogFormat, LogLevel

_STDERR: Final = 2
_LEVELS: Final[Mapping[str, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

Render = Callable[[Mapping[str, object]], bytes]


def configure(daemon: str, *, level: LogLevel, log_format: LogFormat) -> None:
    """Sends our events and those of libraries to stderr; call it once, before anything is logged."""
    writer = _EventWriter(LineWriter(_STDERR), text_line if log_format == "text" else json_line)
    shape = _Shape(daemon)
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, shape],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: writer,
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(handlers=[_FromLibraries(shape, writer)], level=_LEVELS[level], force=True)
    logging.captureWarnings(capture=True)


def json_line(event: Mapping[str, object]) -> bytes:
    try:
        return msgspec.json.encode(event, enc_hook=repr)
    except Exception:  # noqa: BLE001  (half an encoding, a repr that raises, a ring: nothing of this ends a daemon)
        return json.dumps({str(key): _text(value) for key, value in event.items()}).encode()


def text_line(event: Mapping[str, object]) -> bytes:
    """One line for people; a traceback follows on lines of its own."""
    head = " ".join((_text(event.get("ts")), f"{_text(event.get('level')):7}", _text(event.get("event"))))
    rest = [f"{key}={_word(value)}" for key, value in event.items() if key not in _HEAD and key != "traceback"]
    tail = ["\n" + _text(event["traceback"]).rstrip()] if "traceback" in event else []
    return " ".join([head, *rest, *tail]).encode(errors="backslashreplace")


_HEAD: Final = ("ts", "level", "event", "daemon")


def _text(value: object) -> str:
    try:
        return value if isinstance(value, str) else repr(value)
    except Exception:  # noqa: BLE001  (somebody else's repr)
        return f"<{type(value).__name__} without a repr>"


def _word(value: object) -> str:
    """Quotes text that could be mistaken for something else, such as the next line."""
    text = _text(value)
    return text if text.isprintable() and " " not in text and text else repr(text)


class _Shape:
    """Puts the fields of every line first, and formats the exception as a traceback."""

    def __init__(self, daemon: str) -> None:
        self._daemon = daemon

    def __call__(
        self, _: object, method: str, event: MutableMapping[str, Any]
    ) -> tuple[tuple[object, ...], dict[str, Any]]:
        raised = _raised(event.pop("exc_info", None))
        ts = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        head = {"ts": ts, "level": method, "event": event.pop("event", ""), "daemon": self._daemon}
        tail = {"traceback": "".join(traceback.format_exception(raised))} if raised else {}
        return ({**head, **{key: value for key, value in event.items() if key not in _HEAD}, **tail},), {}


def _raised(exc_info: object) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return cast("tuple[object, BaseException | None, object]", exc_info)[1]
    return sys.exception() if exc_info else None


class _EventWriter:
    """The logger at the end of structlog's chain."""

    def __init__(self, lines: LineWriter, render: Render) -> None:
        self._lines = lines
        self._render = render

    def msg(self, event: Mapping[str, object]) -> None:
        lost = self._lines.lost
        line = self._render({**event, "lost": lost} if lost else event)
        if self._lines.write(line):
            self._lines.lost = 0

    debug = info = warning = error = critical = exception = msg


class _FromLibraries(logging.Handler):
    """Writes the standard library's log records in the same format."""

    def __init__(self, shape: _Shape, writer: _EventWriter) -> None:
        super().__init__()
        self._shape = shape
        self._writer = writer

    def emit(self, record: logging.LogRecord) -> None:
        bound = structlog.contextvars.get_contextvars()
        event = {**bound, "event": _message(record), "logger": record.name, "exc_info": record.exc_info}
        (shaped,), _ = self._shape(None, record.levelname.lower(), event)
        self._writer.msg(cast("Mapping[str, object]", shaped))


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  (a library whose arguments don't fit its own format)
        return _text(record.msg)


_PIECE_BYTES: Final = select.PIPE_BUF
_PATIENCE_MS: Final = 20  # for a reader that is only a little behind; none once a line was lost


class LineWriter:
    """Writes whole lines to a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.lost = 0
        self._descriptor = descriptor
        self._cut = False
        self._turn = threading.RLock()  # reentrant: a finalizer may log while a line is being written

    def write(self, line: bytes) -> bool:
        """Writes `line` and a newline; returns False if it was dropped."""
        with self._turn:
            return self._write(line)

    def _write(self, line: bytes) -> bool:
        rest = (b"\n" if self._cut else b"") + line + b"\n"
        patience_ms = 0 if self.lost else _PATIENCE_MS
        while rest:
            written = self._write_piece(rest[:_PIECE_BYTES], patience_ms)
            if not written:
                self.lost += 1
                return False
            rest = rest[written:]
            self._cut = bool(rest)
        return True

    def _write_piece(self, piece: bytes, patience_ms: int) -> int:
        """Returns how many bytes were written; 0 if none can be."""
        room = select.poll()  # one a piece, since threads can't share it
        room.register(self._descriptor, select.POLLOUT)
        try:
            return os.write(self._descriptor, piece) if room.poll(patience_ms) else 0
        except OSError:
            return 0


def keep_standard_descriptors() -> None:
    """Opens those of 0, 1 and 2 that are closed: a socket with the number 2 would receive our log lines."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one


MOST_KEYS: Final = 1024
_log = structlog.get_logger()


class Repeats:
    """Rate limit for events: one in `every_s` seconds for each key."""

    def __init__(self, *, every_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._every_s = every_s
        self._clock = clock
        self._seen: dict[Hashable, tuple[float, int]] = {}

    def __len__(self) -> int:
        """How many keys are remembered."""
        return len(self._seen)

    def due(self, key: Hashable = None) -> int | None:
        """None if `key` must be suppressed; else how often it was suppressed since it was last logged."""
        now = self._clock()
        spoke, silent = self._seen.get(key, (now - self._every_s, 0))
        if now - spoke < self._every_s:
            self._seen[key] = (spoke, silent + 1)
            return None
        self._seen.pop(key, None)
        if len(self._seen) >= MOST_KEYS:
            del self._seen[next(iter(self._seen))]
        self._seen[key] = (now, 0)
        return silent

    def say(self, event: str, *, key: Hashable = None, level: int = logging.WARNING, **about: object) -> None:
        """Logs the event if it is due for its text and `key`, with how often it was suppressed."""
        if (silent := self.due((event, key))) is not None:
            _log.log(level, event, **about, repeats=silent)

    def failed(self, event: str, error: Exception, **about: object) -> None:
        """Logs what failed and why; each type of error is a separate event."""
        if (silent := self.due((event, type(error).__name__))) is not None:
            _log.warning(event, **about, why=str(error), repeats=silent)
