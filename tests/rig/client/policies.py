"""Admission policies as those feel them who write."""

from __future__ import annotations

from collections.abc import Callable

from rig.errors import Refused


def why_not_denied(*attempts: tuple[str, Callable[[], object]]) -> str | None:
    """What passes of these, or is refused in other words than those: the API server takes a moment for a policy."""
    for words, attempt in attempts:
        try:
            attempt()
        except Refused as refused:
            if words not in refused.message:
                return str(refused)
        else:
            return f"nothing is denied of {words!r}"
    return None
