"""Chooses which brokers to query next: a few at a time, the least recently queried first. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

EACH_S: Final = 10
"""Most queries a second: the load on the API server does not grow with the cluster."""


class Asks:
    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}

    def due(self, nodes: Collection[str], now_s: float, *, every_s: float) -> list[str]:
        """The nodes to query now, which are recorded as queried; forgets nodes that are gone."""
        self._asked_at = {node: at for node, at in self._asked_at.items() if node in nodes}
        found = [node for node in nodes if now_s - self._asked_at.get(node, float("-inf")) >= every_s]
        chosen = sorted(found, key=lambda node: self._asked_at.get(node, float("-inf")))[:EACH_S]
        self._asked_at.update(dict.fromkeys(chosen, now_s))
        return chosen
