"""crishim's condition as a file: its faults, whether it honours allocations, and its public keys.

crishim has no credentials and serves in spite of faults; the advertiser reports them to the cluster, and the doctor to
people. The file is written whole, at once when something changes and else every few seconds. So its time is a sign of
life, and an old or missing file means that crishim is not in force. Pure; `condition_file` reads it.
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
    """One fault, while it lasts."""

    cause: Annotated[str, Meta(pattern=r"\A[a-z]{1,32}\Z")]
    """`settings`, `keys`, `plugins`, `state`, `runtime`, `restore` or `metrics`; a newer crishim may have more."""
    sentence: Annotated[str, Meta(min_length=1, max_length=LONGEST)]
    """What is wrong, on what, and what to do; the same while the cause is."""
    refuses: bool = True
    """Whether containers with an allocation are refused because of it, so that the node should get none."""


LONGEST_NAME: Final = 253
_Name = Annotated[str, Meta(max_length=LONGEST_NAME)]


class Guarded(Struct, frozen=True):
    """A container that requested cards without an allocation, and was denied access to them."""

    namespace: _Name
    pod: _Name
    container: _Name


class Condition(Struct, frozen=True, kw_only=True):
    """All faults of crishim; normally none."""

    v: int = 1
    faults: Annotated[tuple[Fault, ...], Meta(max_length=MOST)] = ()
    guarded: Annotated[tuple[Guarded, ...], Meta(max_length=MOST_GUARDED)] = ()
    """Recent ones."""
    keys: Annotated[tuple[Annotated[str, Meta(pattern=r"\A[0-9a-f]{16}\Z")], ...], Meta(max_length=MOST)] = ()
    """Ids of the public keys that verify allocations, sorted."""
    version: Annotated[str, Meta(max_length=64)] = ""
    """crishim's version."""


_decoder: Final = msgspec.json.Decoder(Condition)


def fault(cause: str, sentence: str, *, refuses: bool = True) -> Fault:
    """A fault with a sentence of any length, shortened to one printable line."""
    return Fault(cause, one_line(sentence, LONGEST), refuses)


def encode_condition(condition: Condition) -> bytes:
    return msgspec.json.encode(condition, order="deterministic")


def decode_condition(raw: bytes) -> Condition | None:
    """Decodes the file; None if it is invalid."""
    try:
        return _decoder.decode(raw) if len(raw) <= MAX_BYTES else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
