"""Documents are as long as a reader who begins can bear."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
TOLD_BY_CARDS = "real-card.md"
"""A table that a program writes: looked up, not read."""
WRITTEN = re.compile(r"<!-- (?:settings|metrics) .*?<!-- end -->", re.DOTALL)
"""Such tables within pages."""


def test_the_architecture_is_one_page() -> None:
    lines = (DOCS / "architecture.md").read_text().splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 120


def test_all_documents_together_have_at_most_29_000_words() -> None:
    texts = {page.name: WRITTEN.sub("", page.read_text()) for page in DOCS.glob("*.md") if page.name != TOLD_BY_CARDS}
    words = {name: len(re.findall(r"\S*\w\S*", text)) for name, text in texts.items()}
    assert sum(words.values()) <= 29_000, words
