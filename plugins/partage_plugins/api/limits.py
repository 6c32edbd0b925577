"""Size limits for external data, checked before it is parsed, so that hostile input costs little."""

from __future__ import annotations

from typing import Annotated, Final

from msgspec import Meta

MAX_ANNOTATION_BYTES: Final = 256 * 1024  # the API server's limit for all annotations of an object together
MAX_DEPTH: Final = 32
MAX_CARDS: Final = 512
MAX_CONTAINERS: Final = 512
MAX_KINDS: Final = 32
WHOLE_MILLI: Final = 1000

Milli = Annotated[int, Meta(ge=0, le=WHOLE_MILLI)]
"""Thousandths of one card."""
Bytes = Annotated[int, Meta(ge=0, le=2**62)]
Generation = Annotated[int, Meta(ge=1, le=2**53)]
Small = Annotated[int, Meta(ge=0, le=65535)]
