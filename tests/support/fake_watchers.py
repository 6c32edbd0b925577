"""Watches of a fake API server: each one's lines, possibly reordered, and streamed lists."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from enum import Enum, auto
from typing import Final

from support.fake_answers import No, Object, matching
from support.fake_faults import Asked, Weather

LATER_S: Final = 0.02
"""A delayed line without a successor is sent after this time."""
_ENDS: Final = "k8s.io/initial-events-end"
_FORBIDDEN: Final = "sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled"


class Lists(Enum):
    """How watches that request a list are handled."""

    STREAMED = auto()
    REFUSED = auto()
    IGNORED = auto()
    """Like a server without the feature: sends all objects, but no end marker."""


class Watcher:
    def __init__(self, asked: Asked) -> None:
        self.matches = matching(asked.path, asked.query)
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        """None marks the end."""
        self.is_disordered = False
        self._query = asked.query
        self._kept: list[bytes] = []
        """Delayed lines."""
        self._waits_for_end = False

    def tell(self, line: bytes, weather: Weather | None) -> None:
        lines, is_late = ((line,), False) if weather is None else weather.disturbed(line)
        if is_late:
            self._kept += lines
            self.is_disordered = True
            asyncio.get_running_loop().call_later(LATER_S, self._tell_kept)
            return
        for each in lines:
            self.lines.put_nowait(each)
        self._tell_kept()

    def tell_all(self, items: Sequence[Object], lists: Lists) -> None:
        is_list = self._query.get("sendInitialEvents") == "true" and lists is not Lists.IGNORED
        if is_list and (lists is Lists.REFUSED or self._query.get("resourceVersionMatch") != "NotOlderThan"):
            raise No(422, "Invalid", f'ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: {_FORBIDDEN}')
        for held in items:
            self.lines.put_nowait(line_of("ADDED", held))
        self._waits_for_end = is_list and self._query.get("allowWatchBookmarks") == "true"

    def tell_end(self, version: int) -> None:
        """Send the list's end marker if it is still due, after all delayed lines."""
        if self._waits_for_end:
            self._waits_for_end = False
            self._tell_kept()
            self.lines.put_nowait(bookmark(version, {_ENDS: "true"}))

    def _tell_kept(self) -> None:
        for each in self._kept:
            self.lines.put_nowait(each)
        self._kept.clear()


def bookmark(version: int, annotations: Object | None = None) -> bytes:
    more = {"annotations": annotations} if annotations else {}
    return line_of("BOOKMARK", {"metadata": {"resourceVersion": str(version), **more}})


def line_of(kind: str, object_: Object) -> bytes:
    return json.dumps({"type": kind, "object": object_}).encode() + b"\n"
