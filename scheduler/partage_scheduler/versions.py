"""Which version of each object was seen last, so that what comes late or twice changes nothing.

Versions of one object can be compared as numbers; where they are no numbers, the last that was told is the newest. A
uid that is gone is gone for ever, so it is remembered for a while.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Final

_REMEMBERED: Final = 1 << 16


class Versions:
    def __init__(self) -> None:
        self._seen: dict[str, str] = {}
        self._gone: OrderedDict[str, None] = OrderedDict()

    def is_news(self, uid: str, version: str) -> bool:
        """Whether this is newer than what was seen of the object; it is seen now."""
        if uid in self._gone:
            return False
        seen = self._seen.get(uid)
        if seen and version and (seen == version or _is_older(version, seen)):
            return False
        self._seen[uid] = version
        return True

    def exists(self, uid: str) -> None:
        """It is there in a version that can't be read, so what is read of it next is news."""
        if uid not in self._gone:
            self._seen.setdefault(uid, "")

    def gone(self, uid: str) -> None:
        """The object is no more, or never of interest again."""
        self._seen.pop(uid, None)
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def known(self) -> list[str]:
        return list(self._seen)


def _is_older(version: str, seen: str) -> bool:
    return version.isdigit() and seen.isdigit() and int(version) < int(seen)
