"""Suspension of pods: what its owner allows, and what a node reports of the pods that it was told to suspend. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct

from partage_plugins.api import keys
from partage_plugins.api.limits import Generation
from partage_plugins.api.names import PodUid
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError

ALLOWED: Final = "allowed"
LONGEST_WHY: Final = 512


class SuspensionReport(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one pod, by its node. Neither done nor refused: its node is about it."""

    gen: Generation
    """Of the signed allocation that this is about."""
    is_done: bool = False
    """Nothing of the pod is on its cards, and nothing of it starts there."""
    why: Annotated[str, Meta(max_length=LONGEST_WHY)] = ""
    """Why the node can't: its containers run on. Empty if it is not refused."""


Reports = dict[PodUid, SuspensionReport]
READ_REPORTS: Final = Reader("suspended pods", Reports)
"""The annotation on a node's Lease, and crishim's file."""


def read_suspend(annotations: Mapping[str, str]) -> bool:
    """Whether the pod may be suspended; raises `DecodeError`."""
    text = annotations.get(keys.SUSPEND)
    if text not in {None, ALLOWED}:
        raise DecodeError("request", path=keys.SUSPEND, value=repr(text), allowed=f"{ALLOWED}, or no such annotation")
    return text is not None
