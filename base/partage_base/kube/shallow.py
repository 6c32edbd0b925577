"""JSON without what is nested deeper than anything that is read. Pure, and it does not recurse.

Decoders recurse, so they give up on what is nested about as deep as Python's stack. Whoever may write an object can
nest `metadata.managedFields` ten times as deep, and nobody reads them. Time and memory are linear in the text, about a
quarter of a second for 1.5 MiB of brackets alone; so ask only when a decoder gave up.
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import Final

DEEPEST: Final = 64
"""Levels that are kept; no field that is read is as deep."""
_PIECES: Final = re.compile(rb'(?:[^"\[\]{}]++|"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z))++|[\[\]{}]', re.DOTALL)
"""A bracket, or what stands between two: strings are taken whole, and one without an end goes up to the end."""
_WHOLE: Final = itemgetter(0)
_STEPS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def shallow(text: bytes, deepest: int = DEEPEST) -> bytes:
    """The same document, with arrays and objects at the level `deepest` empty; whether it is JSON is not looked at."""
    kept, depth = bytearray(), 0
    for piece in map(_WHOLE, _PIECES.finditer(text)):
        step = _STEPS.get(piece, 0)
        depth += step
        # A bracket is at the level inside of it: of one that closes, that is the depth before.
        if depth + (step < 0) < deepest + (step != 0):
            kept += piece
    return bytes(kept)
