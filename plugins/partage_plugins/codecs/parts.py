"""Parts of a text that belong to kinds: typed if the kind is known, otherwise kept as raw JSON."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec

from partage_plugins.api.names import Kind
from partage_plugins.codecs.decoder import Reader


@cache
def _reader(what: str, type_: Any) -> Reader[Any]:  # noqa: ANN401  any kind's type
    return Reader(what, type_)


def read_parts(what: str, parts: Mapping[Kind, msgspec.Raw], types: Mapping[Kind, Any], *, at: str) -> dict[Kind, Any]:
    """Each part as its kind's type; a part of an unknown kind is copied, so that it keeps no large text alive."""
    typed: dict[Kind, Any] = {}
    for kind, raw in parts.items():
        type_ = types.get(kind)
        typed[kind] = raw.copy() if type_ is None else _reader(what, type_).read_part(raw, at=f"{at}.{kind}")
    return typed
