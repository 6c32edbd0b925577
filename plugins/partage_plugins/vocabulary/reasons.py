"""Why a pod does not fit on a node: a code, its figures, and what may help. It becomes a sentence where it is shown.

Nothing is decided by words. Equal reasons are counted together over nodes.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace


class Reason(Struct, frozen=True):
    """Stated by what keeps the pod away; equal reasons are counted together."""

    code: str
    """For programs; stable. A plugin's begins with its kind: `gpu/share`."""
    words: str
    """For people, the same for each code and as it is counted over nodes: `node(s) had untolerated taint {}`, with `{}`
    for each figure."""
    lasts: bool = False
    """No pod that leaves takes it away: that something was freed is no cause to try again, nor to evict anybody."""
    figures: tuple[str, ...] = ()

    def of(self, *figures: str) -> Reason:
        """The same reason with the figures that its words leave open."""
        return replace(self, figures=figures)

    def __str__(self) -> str:
        """The sentence for people, figures filled in."""
        return self.words.format(*self.figures) if self.figures else self.words


SAID: Final = Reason("said", "{}")
"""Somebody's own words, shown as they are: the pod is tried again after any change."""
