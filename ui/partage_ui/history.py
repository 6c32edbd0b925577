"""What containers wanted and got of their cards, for each minute of the last hour. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Hashable
from typing import Final

MINUTES: Final = 60
MOST: Final = 60_000
"""Most pairs of container and card that are kept, at about 500 bytes each."""
_NOTHING: Final = 0xFFFF
_WHOLE: Final = 1000


class _Hour:
    __slots__ = ("got", "last", "wanted")

    def __init__(self, minute: int) -> None:
        self.last = minute
        self.got = array("H", [_NOTHING] * MINUTES)
        self.wanted = array("H", [_NOTHING] * MINUTES)


class History:
    """By container and card; a pair that is not reported for an hour is forgotten."""

    def __init__(self, *, most: int = MOST) -> None:
        self._most = most
        self._hours: dict[Hashable, _Hour] = {}
        self._swept_at = 0

    def __len__(self) -> int:
        return len(self._hours)

    def note(self, key: Hashable, at_s: float, *, wanted: float, got: float) -> None:
        """Both are parts of the card's time over the last minute, 0 to 1."""
        minute = int(at_s // 60)
        self._sweep(minute)
        hour = self._hours.get(key)
        if hour is None:
            if len(self._hours) >= self._most:
                return
            hour = self._hours[key] = _Hour(minute)
        for passed in range(hour.last + 1, min(minute, hour.last + MINUTES) + 1):
            hour.got[passed % MINUTES] = hour.wanted[passed % MINUTES] = _NOTHING
        hour.last = max(minute, hour.last)
        hour.got[minute % MINUTES], hour.wanted[minute % MINUTES] = _part(got), _part(wanted)

    def of(self, key: Hashable, at_s: float) -> tuple[tuple[float, float] | None, ...]:
        """Wanted and got for each of the last 60 minutes, the oldest first; None for minutes without figures."""
        minute, hour = int(at_s // 60), self._hours.get(key)
        if hour is None:
            return ()
        return tuple(_at(hour, each) for each in range(minute - MINUTES + 1, minute + 1))

    def _sweep(self, minute: int) -> None:
        if minute == self._swept_at:
            return
        self._swept_at = minute
        self._hours = {key: hour for key, hour in self._hours.items() if hour.last > minute - MINUTES}


def _at(hour: _Hour, minute: int) -> tuple[float, float] | None:
    got, wanted = hour.got[minute % MINUTES], hour.wanted[minute % MINUTES]
    if not hour.last - MINUTES < minute <= hour.last or got == _NOTHING:
        return None
    return wanted / _WHOLE, got / _WHOLE


def _part(part: float) -> int:
    return max(0, min(_WHOLE, round(part * _WHOLE)))
