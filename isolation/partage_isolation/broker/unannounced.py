"""Processes that a card shows and that never came to us: each is charged to its container, where that is known."""

from __future__ import annotations

import os

from partage_isolation.broker.containers import Container
from partage_isolation.broker.identities import Identities
from partage_isolation.broker.ledger import Ledger
from partage_isolation.broker.pieces import ProcessId
from partage_isolation.broker.processes import start_of
from partage_isolation.broker.wire import TOKEN_BYTES
from partage_isolation.watching.use import CardUse, Sample
from partage_plugins.vocabulary.names import CardId


class Unannounced:
    """Of all containers."""

    def __init__(self, ledger: Ledger, identities: Identities) -> None:
        self._ledger, self._identities = ledger, identities

    def seen(self, card: CardId, use: Sample | None) -> None:
        """What a card says of everybody on it."""
        for pid, amount in use.processes.items() if isinstance(use, CardUse) else ():
            if amount is not None and not self._is_known(pid, card) and (start := start_of(pid)) is not None:
                self.charge((pid, start), card, amount)

    def charge(self, who: ProcessId, card: CardId, amount: int) -> bool:
        """False where its container is not known, or has no such card."""
        container = self._container_of(who)
        number = container.card_number(card) if container is not None else None
        if container is None or number is None:
            return False
        token = os.urandom(TOKEN_BYTES)
        return self._ledger.lives.found(container, who, token, card=number, amount=amount) is not None

    def _is_known(self, pid: int, card: CardId) -> bool:
        """Whether the books have what a process of that pid has of that card."""
        for served in self._identities.served.values():
            number = served.container.card_number(card)
            for process in served.container.processes.values():
                if process.pid == pid and number in process.accounts:
                    return True
        return False

    def _container_of(self, who: ProcessId) -> Container | None:
        served = self._identities.served.values()
        key = next((each.container.key for each in served if who in each.container.processes), None)
        key = key or self._identities.container_of(who[0])
        return self._ledger.containers.get(key) if key is not None else None
