"""How crishim is, as a file that others read: what is wrong with it, whether it honours allocations, and by which keys.

crishim has no credentials and serves whatever is wrong; the advertiser tells the cluster, and the doctor people. The
file is written whole, at once when something changes and else every few seconds: so its time is a sign of life, and one
that is old or absent says that crishim is not in force. Pure; `condition_file` reads it.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from partage_plugins.text import one_line

MAX_BYTES: Final = 64 * 1024
MOST: Final = 64
LONGEST: Final = 512
MOST_GUARDED: Final = 16


class Fault(Struct, frozen=True):
    """One thing that is wrong, for as long as it is."""

    cause: Annotated[str, Meta(pattern=r"\A[a-z]{1,32}\Z")]
    """`settings`, `keys`, `plugins`, `state`, `runtime`, `restore` or `metrics`; a newer crishim may know more."""
    sentence: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    """What is wrong, on what, and what to do; the same as long as the cause is."""
    refuses: bool = True
    """Whether containers with an allocation are refused for it, so that the node should get none."""


LONGEST_NAME: Final = 253
_Name = Annotated[str, Meta(max_length=LONGEST_NAME)]


class Guarded(Struct, frozen=True):
    """A container that asked for cards which nobody gave it, and was kept from them."""

    namespace: _Name
    pod: _Name
    container: _Name


class Condition(Struct, frozen=True, kw_only=True):
    """All that is wrong; nothing, as a rule."""

    v: int = 1
    faults: Annotated[tuple[Fault, ...], Meta(max_length=MOST)] = ()
    guarded: Annotated[tuple[Guarded, ...], Meta(max_length=MOST_GUARDED)] = ()
    """Of late."""
    keys: Annotated[tuple[Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")], ...], Meta(max_length=MOST)] = ()
    """Ids of the public keys by which it believes allocations, sorted."""
    version: Annotated[str, Meta(max_length=64)] = ""
    """Its own."""


_decoder: Final = msgspec.json.Decoder(Condition)


def fault(cause: str, sentence: str, *, refuses: bool = True) -> Fault:
    """With a sentence of any length, as one printable line."""
    return Fault(cause, one_line(sentence, LONGEST), refuses)


def encode_condition(condition: Condition) -> bytes:
    """The text of the file."""
    return msgspec.json.encode(condition, order="deterministic")


def decode_condition(raw: bytes) -> Condition | None:
    """What the file says; None where it is none that can be read."""
    try:
        return _decoder.decode(raw) if len(raw) <= MAX_BYTES else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
