"""What contexts take, by the model of the card: learned from samples, so that room is kept for the next one.

Pure. A card whose model nobody told is its own model.
"""

from __future__ import annotations

from collections.abc import Mapping

from partage_plugins.vocabulary.names import CardId


class ContextSizes:
    """By model."""

    def __init__(self, known: Mapping[str, int] | None = None) -> None:
        """`known` from an earlier life."""
        self._sizes = dict(known or {})
        self._models: dict[CardId, str] = {}

    def is_model(self, card: CardId, model: str) -> None:
        """What a card is."""
        self._models[card] = model

    def model_of(self, card: CardId) -> str:
        """For metrics and files."""
        return self._models.get(card, str(card))

    def size(self, card: CardId) -> int | None:
        """Bytes, or None where no context was seen yet."""
        return self._sizes.get(self.model_of(card))

    def learned(self, card: CardId, size: int) -> bool:
        """A sample showed one; whether that is news."""
        model = self.model_of(card)
        is_news = self._sizes.get(model) != size
        self._sizes[model] = size
        return is_news

    @property
    def known(self) -> Mapping[str, int]:
        """For a file."""
        return dict(self._sizes)
