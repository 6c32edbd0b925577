"""All that is known of SharePods: they, their pods, their cards, and whose turn it is. Pure."""

from __future__ import annotations

from collections.abc import Callable

from partage_scheduler.sharepods.agenda import Agenda
from partage_scheduler.sharepods.cards import CardBook
from partage_scheduler.sharepods.catalogue import Catalogue
from partage_scheduler.sharepods.objects import Key, OwnedPod, SharePod


class Scene:
    def __init__(self, draw: Callable[[], str]) -> None:
        """`draw` makes up a GPUID."""
        self.shares = Catalogue[SharePod](self._heard)
        self.pods = Catalogue[OwnedPod](self._heard)
        self.cards = CardBook(draw)
        self.agenda = Agenda()

    def _heard(self, key: Key) -> None:
        """Whatever changed about one changes what others of the same card may do."""
        for each in (key, *self.cards.seen(key, self.shares.get(key), self.pods.get(key))):
            self.agenda.add(each)
