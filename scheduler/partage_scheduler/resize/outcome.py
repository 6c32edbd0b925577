"""What became of a wish for other amounts: the condition that says so quotes the wish. Pure."""

from __future__ import annotations

from hashlib import sha256
from typing import Final

from partage_plugins.vocabulary.keys import RESIZED
from partage_scheduler.objects import ApiPod

_LONGEST_QUOTE: Final = 512


def quoted(wish: str) -> str:
    """How the words of the condition begin: they are about this wish and no other."""
    shown = wish if len(wish) <= _LONGEST_QUOTE else f"resize {sha256(wish.encode()).hexdigest()}"
    return f"{shown}: "


def said_of(pod: ApiPod, wish: str) -> tuple[str, str]:
    """The reason and the words after the quote; both empty where nothing was said of this wish."""
    stands = next((each for each in pod.status.conditions if each.type == RESIZED), None)
    if stands is None or not stands.message.startswith(quoted(wish)):
        return "", ""
    return stands.reason, stands.message.removeprefix(quoted(wish))
