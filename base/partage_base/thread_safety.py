"""Prepares msgspec types for their first use from several threads.

msgspec analyses a type when it is first used. A second thread that uses it before that is complete reads uninitialised
data, and the process crashes (seen with 0.22).
"""

from __future__ import annotations

import threading
from typing import Any, Final, TypeVar

import msgspec

_T = TypeVar("_T")
_learnt: Final[set[Any]] = set()
_learning: Final = threading.Lock()


def thread_safe(type_: _T) -> _T:
    """The type itself, after msgspec has analysed it and all types in it."""
    if type_ not in _learnt:
        with _learning:
            msgspec.json.Decoder(type_)
            _learnt.add(type_)
    return type_
