"""Documents are as long as a reader who begins can bear, their links lead somewhere, their tables are the code's."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = {page.name: page.read_text() for page in (ROOT / "docs").glob("*.md")}
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]+))?\)")
WRITTEN = re.compile(r"<!-- (?:settings|metrics) .*?<!-- end -->", re.DOTALL)
"""Tables that a program writes: looked up, not read, as those of real-card.md."""
LOOKED_UP = {"decisions.md", "real-card.md"}


def test_the_architecture_is_one_page_and_the_read_ones_together_have_at_most_29_570_words() -> None:
    lines = PAGES["architecture.md"].splitlines()
    assert len(lines) <= 120
    assert max(map(len, lines)) <= 120
    read = {name: WRITTEN.sub("", text) for name, text in PAGES.items() if name not in LOOKED_UP}
    words = {name: len(re.findall(r"\S*\w\S*", text)) for name, text in read.items()}
    assert sum(words.values()) <= 29_570, words


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as code forges make them."""
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
