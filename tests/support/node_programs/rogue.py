"""A node plugin as nobody should write one: what the pod's annotation says, it does to the process that it runs in."""

from __future__ import annotations

import os
from typing import Annotated

from msgspec import Meta, Struct

from partage_plugins import hookimpl
from partage_plugins.vocabulary import Adjustment, Container, Granted, Kind, KindType


class RogueGrant(Struct, frozen=True):
    """What it is to do: crash, hang or eat."""

    do: Annotated[str, Meta(max_length=16)]


class Nothing(Struct, frozen=True):
    """There is nothing to ask for, and nothing to have."""


ROGUE = KindType(name=Kind("rogue"), request=Nothing, grant=RogueGrant, part=Nothing)


class Rogue:
    @hookimpl
    def partage_kind(self) -> object:
        return ROGUE

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        for grant in granted.of(ROGUE):
            {"crash": crash, "hang": hang, "eat": eat}[grant.do]()
        return None


def crash() -> None:
    os._exit(3)


def hang() -> None:
    while True:
        pass


def eat() -> None:
    eaten = bytearray()
    while True:
        eaten += b"x" * (16 << 20)
