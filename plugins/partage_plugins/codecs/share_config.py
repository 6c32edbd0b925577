"""The opaque parameters of our DRA driver in classes and claims, beside the amounts of a share. Pure.

The API server validates none of it, so anything that is not understood is refused: a misspelt limit must not be
ignored. The ceiling is the lowest of all that apply to a request, so a claim can't exceed the limit that its class
sets.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta, Struct

from partage_plugins.api.limits import WHOLE_MILLI
from partage_plugins.codecs.decoder import Reader

WHAT: Final = "parameters of gpu.partage.dev"


class ShareConfig(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    api_version: Literal["partage.dev/v1"]
    kind: Literal["ShareConfig"]
    limit_milli: Annotated[int, Meta(ge=1, le=WHOLE_MILLI)] = WHOLE_MILLI
    """Ceiling of a card's time, even if the card is idle."""


_reader: Final = Reader(WHAT, ShareConfig)


def read_share_config(raw: bytes | msgspec.Raw) -> ShareConfig:
    """Decodes one opaque parameter; raises `DecodeError` for anything else."""
    return _reader.read(bytes(raw))


def ceiling(configs: Iterable[ShareConfig]) -> int:
    """The ceiling of a card's time, in milli, if all of these apply."""
    return min((each.limit_milli for each in configs), default=WHOLE_MILLI)
