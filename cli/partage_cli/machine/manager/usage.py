"""What containers use of the cards, as the broker last told. It is asked at most once a second, and never waited for.

Where it is away nothing is known: an error of its would keep people from seeing what runs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from partage_isolation.wire.client import BrokerClient
from partage_isolation.wire.messages import CardHeld, Told
from partage_plugins.codecs import container_key
from partage_plugins.errors import PartageError
from partage_plugins.vocabulary import CardId, ContainerKey, ContainerName, PodUid

_FRESH_S: Final = 1.0


class Usage(Struct, frozen=True):
    held: Mapping[tuple[ContainerKey, CardId], CardHeld] = {}
    """By container key and card."""
    used_bytes: Mapping[CardId, int | None] = {}
    """By card."""
    engine_containers: Mapping[ContainerKey, tuple[str, ...]] = {}
    """Of claims: who has them, by the engine's ids."""

    def of(self, uid: str, container: str, attempt: int, card: str) -> CardHeld | None:
        key = container_key(PodUid(uid), ContainerName(container), attempt)
        return self.held.get((key, CardId(card)))


class Gauge:
    def __init__(self, broker: BrokerClient, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._broker, self._clock = broker, clock
        self._last, self._until_s = Usage(), float("-inf")
        self._asking = asyncio.Lock()

    async def read(self, *, anew: bool = False) -> Usage:
        async with self._asking:
            if anew:
                self._until_s = float("-inf")
            if self._clock() >= self._until_s:
                self._last = await asyncio.to_thread(self._ask)
                self._until_s = self._clock() + _FRESH_S
            return self._last

    def _ask(self) -> Usage:
        try:
            return usage_of(self._broker.tell())
        except PartageError:
            return Usage()


def usage_of(told: Told) -> Usage:
    held = {(each.key, card.card): card for each in told.containers for card in each.cards}
    engine_containers = {each.key: each.engine_containers for each in told.containers if each.is_claim}
    return Usage(held, {card.card: card.used_bytes for card in told.cards}, engine_containers)
