"""The outcome of a resize request, as a condition that quotes the request. Pure."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from partage_plugins.api.keys import RESIZED
from partage_scheduler.objects import ApiPod

_LONGEST_QUOTE: Final = 512


def quoted(wish: str) -> str:
    """Prefix of the condition's message, which ties it to this request."""
    shown = wish if len(wish) <= _LONGEST_QUOTE else f"resize {sha256(wish.encode()).hexdigest()}"
    return f"{shown}: "


def said_of(pod: ApiPod, wish: str) -> tuple[str, str]:
    """The reason, and the message after the quote; both empty if the condition is about another request."""
    stands = next((each for each in pod.status.conditions if each.type == RESIZED), None)
    if stands is None or not stands.message.startswith(quoted(wish)):
        return "", ""
    return stands.reason, stands.message.removeprefix(quoted(wish))
