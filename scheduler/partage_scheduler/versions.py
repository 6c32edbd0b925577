"""Last seen version of each object, so that late and repeated events change nothing.

Versions of one object compare as numbers; if they are not numbers, the last one received is the newest. The uid of a
deleted object never returns, so it is remembered for a while.
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
        """Records a version; returns whether it is newer than the last one seen of the object."""
        if uid in self._gone:
            return False
        seen = self._seen.get(uid)
        if seen and version and (seen == version or _is_older(version, seen)):
            return False
        self._seen[uid] = version
        return True

    def exists(self, uid: str) -> None:
        """Records that the object exists in an undecodable version, so that the next decodable one counts as newer."""
        if uid not in self._gone:
            self._seen.setdefault(uid, "")

    def gone(self, uid: str) -> None:
        """Forgets an object that is deleted or never of interest again; later events of it are ignored."""
        self._seen.pop(uid, None)
        self._gone[uid] = None
        if len(self._gone) > _REMEMBERED:
            self._gone.popitem(last=False)

    def known(self) -> list[str]:
        return list(self._seen)


def _is_older(version: str, seen: str) -> bool:
    return version.isdigit() and seen.isdigit() and int(version) < int(seen)
