"""Decodes the API server's responses. Pure: a status and bytes in, a typed object or an error out."""

from __future__ import annotations

import re
from functools import lru_cache
from operator import itemgetter
from typing import Any, Final, TypeVar, cast

import msgspec

from partage_base.kube.errors import (
    Conflict,
    Gone,
    MalformedResponse,
    NotAllowed,
    NotFound,
    ServerFailed,
    StatusError,
    Throttled,
)
from partage_base.thread_safety import thread_safe

T = TypeVar("T")
LONGEST_RETRY_AFTER_S: Final = 300.0
"""Cap on Retry-After: a wrong value must not silence a node for a day."""
_FIRST_SERVER_FAULT: Final = 500
_PLAIN: Final[dict[int, type[StatusError]]] = {
    401: NotAllowed,
    403: NotAllowed,
    404: NotFound,
    409: Conflict,
    410: Gone,
}
_THROTTLED: Final = 429
_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
DEEPEST: Final = 64
"""Nesting levels that are kept; no field that we read is as deep."""
_PIECES: Final = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))++|[\[\]{}]', re.DOTALL)
"""A bracket, or the text between two: strings are matched whole, an unterminated one up to the end."""
_WHOLE: Final = itemgetter(0)
_STEPS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


class _Details(msgspec.Struct, frozen=True, rename="camel"):
    retry_after_seconds: int = 0


class _Status(msgspec.Struct, frozen=True):
    """A `Status` object, as the API server writes it for an error."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None


def decoded(call: str, body: bytes | msgspec.Raw, type_: type[T]) -> T:
    """Decodes an object, without what is nested too deep; raises `MalformedResponse` with the path of the fault."""
    decoder = _decoder(cast("Any", type_))
    try:
        try:
            return cast("T", decoder.decode(body))
        except RecursionError:
            return cast("T", decoder.decode(shallow(bytes(body))))
    except _UNREADABLE as error:
        raise MalformedResponse(call, f"the answer can't be read: {error}") from None


def shallow(text: bytes, deepest: int = DEEPEST) -> bytes:
    """The same JSON, with arrays and objects at the level `deepest` empty; it does not recurse.

    Decoders recurse, so they fail on JSON nested about as deep as Python's stack. Anyone who may write an object can
    nest `metadata.managedFields` ten times as deep, and nobody reads those. Time and memory are linear in the text,
    about a quarter of a second for 1.5 MiB of brackets alone; so call it only after a decoder failed.
    """
    kept, depth = bytearray(), 0
    for piece in map(_WHOLE, _PIECES.finditer(text)):
        step = _STEPS.get(piece, 0)
        depth += step
        # A bracket belongs to the level inside it: for a closing one, that is the depth before.
        if depth + (step < 0) < deepest + (step != 0):
            kept += piece
    return bytes(kept)


def refusal(call: str, status: int, body: bytes | msgspec.Raw, *, retry_after: str | None = None) -> StatusError:
    """The error for a response that is a refusal. `status` 0: take it from the body, as within a watch."""
    said = _status(body)
    status = status or said.code or _FIRST_SERVER_FAULT
    message, reason = said.message, said.reason
    if kind := _PLAIN.get(status):
        return kind(call, status=status, reason=reason, message=message)
    if status != _THROTTLED and status < _FIRST_SERVER_FAULT:
        return StatusError(call, status=status, reason=reason, message=message)
    busy = Throttled if status == _THROTTLED else ServerFailed
    return busy(
        call, status=status, reason=reason, message=message, retry_after_s=_retry_after_s(retry_after, said.details)
    )


@lru_cache(maxsize=256)
def _decoder(type_: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401  (any type that msgspec takes)
    return msgspec.json.Decoder(thread_safe(type_))


def _status(body: bytes | msgspec.Raw) -> _Status:
    """Decodes a `Status`; proxies answer with pages of their own, and then the text is the message."""
    try:
        return cast("_Status", _decoder(_Status).decode(body))
    except _UNREADABLE:
        return _Status(message=" ".join(bytes(body).decode(errors="replace").split()))


def _retry_after_s(header: str | None, details: _Details | None) -> float | None:
    """Seconds; a date, which only proxies send, is ignored."""
    said = float(header) if header is not None and header.isascii() and header.isdecimal() and len(header) < 10 else 0.0  # noqa: PLR2004
    asked_s = said or (details.retry_after_seconds if details else 0)
    return min(float(asked_s), LONGEST_RETRY_AFTER_S) if asked_s > 0 else None
