"""Why a pod does not fit on a node: a code, its figures, and whether other pods' ends can change it.

It is formatted as a sentence only where it is shown; no decision depends on the text. Equal reasons are counted
together over nodes.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace


class Reason(Struct, frozen=True):
    """One constraint that excludes a node for a pod; equal reasons are counted together."""

    code: str
    """For programs; stable. A plugin's begins with its kind: `gpu/share`."""
    words: str
    """For people: fixed for each code, and worded to follow a number of nodes: `node(s) had untolerated taint {}`, with
    `{}` for each figure."""
    lasts: bool = False
    """The end of another pod can't remove it: freed resources are no cause to retry, and preemption can't help."""
    figures: tuple[str, ...] = ()

    def of(self, *figures: str) -> Reason:
        """The same reason, with values for the `{}` in its text."""
        return replace(self, figures=figures)

    def __str__(self) -> str:
        """The sentence for people, with its figures."""
        return self.words.format(*self.figures) if self.figures else self.words


SAID: Final = Reason("said", "{}")
"""Free text, shown unchanged: the pod is retried after any change."""
