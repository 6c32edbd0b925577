"""Effects of admission policies on writers."""

from __future__ import annotations

from collections.abc import Callable

from rig.errors import Refused


def why_not_denied(*attempts: tuple[str, Callable[[], object]]) -> str | None:
    """The first attempt that is allowed, or denied with other words: the API server takes a moment for a policy."""
    for words, attempt in attempts:
        try:
            attempt()
        except Refused as refused:
            if words not in refused.message:
                return str(refused)
        else:
            return f"nothing is denied of {words!r}"
    return None
