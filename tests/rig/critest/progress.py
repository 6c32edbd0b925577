"""What people are told while critest runs, from the lines of its log. Pure; nothing is decided by it."""

from __future__ import annotations

import re
from typing import Final

_RULE: Final = "-" * 30
_ENDED: Final = re.compile(r"(?:•|S) (?:\[(?P<how>[A-Z ]+)\] )?\[(?P<seconds>[0-9.]+) seconds\]")


class Progress:
    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._ended = 0
        self._name = ""
        self._follows_rule = False

    def read(self, line: str) -> str | None:
        """What there is to tell after this line, if anything."""
        if self._follows_rule and line.startswith("["):
            self._name = line
        self._follows_rule = line == _RULE
        if (found := _ENDED.search(line)) is None:
            return None
        self._ended += 1
        how = (found["how"] or "passed").lower()
        return f"critest {self._ended}/{self._wanted}: {how} in {float(found['seconds']):.1f} s: {self._name}"
