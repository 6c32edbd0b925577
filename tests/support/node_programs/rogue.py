"""A node plugin as it should not be: it ends the process that it runs in."""

from __future__ import annotations

import os

from msgspec import Struct

from partage_plugins import hookimpl
from partage_plugins.vocabulary import Adjustment, Container, Granted, Kind, KindType


class Nothing(Struct, frozen=True):
    """No request, grant or part says anything."""


ROGUE = KindType(name=Kind("rogue"), request=Nothing, grant=Nothing, part=Nothing)


class Rogue:
    @hookimpl
    def partage_kind(self) -> object:
        return ROGUE

    @hookimpl
    def partage_adjust(self, container: Container, granted: Granted) -> Adjustment | None:
        if granted.of(ROGUE):
            os._exit(3)
        return None
