"""Which brokers are asked next: a few at a time, those first that were asked longest ago. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

EACH_S: Final = 10
"""At most so many in a second: what that costs the API server does not grow with the cluster."""


class Asks:
    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}

    def due(self, nodes: Collection[str], now_s: float, *, every_s: float) -> list[str]:
        """Those to ask now, which then count as asked; nodes that are gone are forgotten."""
        self._asked_at = {node: at for node, at in self._asked_at.items() if node in nodes}
        found = [node for node in nodes if now_s - self._asked_at.get(node, float("-inf")) >= every_s]
        chosen = sorted(found, key=lambda node: self._asked_at.get(node, float("-inf")))[:EACH_S]
        self._asked_at.update(dict.fromkeys(chosen, now_s))
        return chosen
