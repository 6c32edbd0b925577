"""Documents have bounded lengths, their links resolve, and their tables match the code."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from support.fences import PAGES, ROOT

DOCUMENTS = sorted({*ROOT.glob("*.md"), *PAGES})
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
WRITTEN = re.compile(r"<!-- \w+ \w+ -->.*?<!-- end -->", re.DOTALL)
"""Tables that tools/tables.py generates from the code: for reference, not for reading."""
ANSWERS = "docs/real-card.md"
"""The page whose tables are a card's answers."""
BEGINNERS = ("README.md", "docs/concepts.md", "docs/docker.md", "docs/install.md")
"""The pages from the introduction to the first shared pod, with Docker and in a cluster."""


def words_of(pages: Iterable[Path]) -> dict[str, int]:
    """The number of words of each document, without generated parts."""
    texts = {str(page.relative_to(ROOT)): WRITTEN.sub("", page.read_text()) for page in pages}
    texts[ANSWERS] = re.sub(r"^\|.*$", "", texts.get(ANSWERS, ""), flags=re.MULTILINE)
    return {name: len(re.findall(r"\S*\w\S*", text)) for name, text in texts.items()}


def test_all_pages_together_have_at_most_35_000_words_beside_what_is_generated() -> None:
    words = words_of(PAGES)
    assert sum(words.values()) <= 35_000, words


def test_who_begins_reads_at_most_4_000_words_to_the_first_shared_pod() -> None:
    words = words_of(ROOT / name for name in BEGINNERS)
    assert sum(words.values()) <= 4_000, words


def test_the_architecture_is_one_page() -> None:
    lines = (ROOT / "docs/architecture.md").read_text().splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 120


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as code forges generate them."""
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document: Path) -> None:
    for target, anchor in LINK.findall(document.read_text()):
        file = (document.parent / target).resolve() if target else document
        assert file.exists(), f"{document.name} links to {target}, which does not exist"
        if anchor:
            assert anchor in anchors(file.read_text()), f"{document.name} links to #{anchor}, which {file.name} lacks"


@pytest.mark.slow
def test_every_table_is_current() -> None:
    command = [sys.executable, str(ROOT / "tools/tables.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


def test_every_daemon_has_its_tables() -> None:
    metrics = [f"metrics {daemon}" for daemon in ("advertiser", "broker", "crishim", "scheduler", "sharepods")]
    marks = ["settings common", "settings scheduler", "settings crishim", "settings broker", *metrics]
    told = "".join(document.read_text() for document in DOCUMENTS)
    assert [mark for mark in marks if f"<!-- {mark} -->" not in told] == []
