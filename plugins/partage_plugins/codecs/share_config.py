"""What classes and claims say of a share beside its amounts: opaque parameters of our driver. Pure.

The API server looks at none of it, so whatever is not understood is refused: a misspelt limit must not become none. A
ceiling is the lowest of all that hold for a request, so that a claim raises nothing that its class sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from partage_plugins.codecs.decoder import Reader
from partage_plugins.vocabulary.limits import WHOLE_MILLI

WHAT: Final = "parameters of gpu.partage.dev"


class ShareConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    api_version: Literal["partage.dev/v1"]
    kind: Literal["ShareConfig"]
    limit_milli: Annotated[int, Meta(ge=1, le=WHOLE_MILLI)] = WHOLE_MILLI
    """Most of a card's time, even where it is idle."""


_reader: Final = Reader(WHAT, ShareConfig)


def read_share_config(raw: bytes | msgspec.Raw) -> ShareConfig:
    """One opaque parameter; raises `DecodeError` for whatever else it is."""
    return _reader.read(bytes(raw))


def ceiling(configs: Iterable[ShareConfig]) -> int:
    """Most of a card's time, in milli, where all of these hold."""
    return min((each.limit_milli for each in configs), default=WHOLE_MILLI)
