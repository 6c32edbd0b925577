"""The broker's audit findings as files that others read: one for each container or card.

The broker has no credentials; the advertiser turns new findings into events. A file is written whole, grows while
problems are found, and is removed some time after they are resolved or the container ended.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from partage_plugins.api.names import ContainerNameText
from partage_plugins.api.pods import PodRef

FINDINGS_FOLDER: Final = "run/partage/broker/findings"
"""Below the node's root."""
SUFFIX: Final = ".json"
MAX_BYTES: Final = 64 * 1024
MOST: Final = 64
"""Limit for one container or card."""


class Problem(Struct, frozen=True):
    """One problem of a container or card."""

    kind: Annotated[str, Meta(pattern=r"\A[A-Z][A-Za-z]{0,63}\Z")]
    sentence: Annotated[str, Meta(min_length=1, max_length=512)]
    stops: bool = False
    """The container is stopped because of it."""


class Findings(Struct, frozen=True, kw_only=True):
    """All problems of one container or card."""

    v: int = 1
    subject: str
    """The container's key, or the card's id."""
    pod: PodRef | None = None
    container: ContainerNameText | None = None
    found: Annotated[tuple[Problem, ...], Meta(max_length=MOST)] = ()


_decoder: Final = msgspec.json.Decoder(Findings)


class NoFindings(ValueError):
    """A file that can't be decoded."""


def encode_findings(findings: Findings) -> bytes:
    return msgspec.json.encode(findings, order="deterministic")


def decode_findings(raw: bytes) -> Findings:
    """Decodes a file; raises `NoFindings`."""
    if len(raw) > MAX_BYTES:
        raise NoFindings(f"{len(raw)} bytes; allowed: {MAX_BYTES}")
    try:
        return _decoder.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NoFindings(str(error)) from error
