"""Types that several threads may decode into for the first time.

msgspec learns what a type is made of when it is first used. A second thread that uses it before that is done reads what
is not there yet, and the process dies of it (seen with 0.22).
"""

from __future__ import annotations

import threading
from typing import Any, Final, TypeVar

import msgspec

_T = TypeVar("_T")
_learnt: Final[set[Any]] = set()
_learning: Final = threading.Lock()


def thread_safe(type_: _T) -> _T:
    """The type itself, of which msgspec knows all; what it is made of is known with it."""
    if type_ not in _learnt:
        with _learning:
            msgspec.json.Decoder(type_)
            _learnt.add(type_)
    return type_
