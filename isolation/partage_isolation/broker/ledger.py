"""The ledger: what each process of each container was lent of each card, and whether there is room for more.

Pure: no clock and no file of its own. Its parts, by what one asks of them: `lives` (processes come and go), `lending`
(they ask for memory and give it back), `sharing` (several hold the same). All of them write through `entries`.
"""

from __future__ import annotations

from collections.abc import Iterator

from partage_isolation.broker.accounts import Account
from partage_isolation.broker.containers import CardBook, Container, Process
from partage_isolation.broker.entries import Entries
from partage_isolation.broker.keeper import Keeper
from partage_isolation.broker.lending import ContextSize, Lending
from partage_isolation.broker.lives import Lives
from partage_isolation.broker.sharing import Sharing
from partage_plugins.vocabulary.names import CardId, ContainerKey


class Ledger:
    """Of one node."""

    def __init__(
        self, keeper: Keeper, *, context_in_limit: bool = True, context_size: ContextSize | None = None
    ) -> None:
        self.entries = Entries(keeper)
        self.containers = self.entries.containers
        self.sharing = Sharing(self.entries)
        self.lives = Lives(self.entries, self.sharing)
        self.lending = Lending(self.entries, context_size or _never_seen)
        self._in_limit = context_in_limit

    def put(self, key: ContainerKey, cards: list[CardBook]) -> Container:
        """A container, or its new limits."""
        known = self.containers.get(key)
        if known is None:
            known = self.containers[key] = Container(key, cards, self._in_limit)
        else:
            known.put(cards)
        return known

    def forget(self, key: ContainerKey) -> None:
        """A container that is gone, with all that was known of it."""
        container = self.containers.pop(key, None)
        if container is not None:
            self.lives.forgotten(container)

    def on_card(self, card: CardId) -> Iterator[tuple[Container, int, Process, Account]]:
        """Every account on a card of the node."""
        for container in self.containers.values():
            number = container.card_number(card)
            if number is not None:
                for process, account in list(container.accounts(number)):
                    yield container, number, process, account


def _never_seen(_card: CardId) -> int | None:
    return None
