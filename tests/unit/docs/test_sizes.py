"""Documents are as long as a reader who begins can bear."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).parents[3] / "docs"
WRITTEN = re.compile(r"<!-- (?:settings|metrics) .*?<!-- end -->", re.DOTALL)
"""Tables that a program writes: looked up, not read, as those of real-card.md."""


def test_the_architecture_is_one_page_and_all_documents_together_have_at_most_29_000_words() -> None:
    pages = {page.name: WRITTEN.sub("", page.read_text()) for page in DOCS.glob("*.md") if page.name != "real-card.md"}
    lines = pages["architecture.md"].splitlines()
    assert (len(lines) <= 120, max(map(len, lines)) <= 120) == (True, True)
    words = {name: len(re.findall(r"\S*\w\S*", text)) for name, text in pages.items()}
    assert sum(words.values()) <= 29_000, words
