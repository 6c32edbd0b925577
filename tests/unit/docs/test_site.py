"""The documents as a site: each page is in the navigation, and the site needs no other site."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SITE = ROOT / ".cache/site/html"
LOADED = re.compile(r"<(?:script|img|link rel=\"(?:stylesheet|preconnect|icon)\")[^>]*(?:src|href)=\"?(https?:)?//")


def test_every_page_of_the_documents_has_a_place_in_the_navigation() -> None:
    listed = set(re.findall(r"\b(\S+\.md)$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    pages = {str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md")}
    assert pages - listed == set()


@pytest.mark.extended("installs a generator of sites; links and anchors are checked by the pages' own tests, too")
def test_the_site_is_built_searches_by_itself_and_loads_nothing_from_elsewhere() -> None:
    done = subprocess.run([ROOT / "tools/site"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((SITE / "search/search_index.json").read_text())["docs"]
    assert any("partage.dev/gpu-milli" in each["text"] for each in found)
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > 30
    assert [page.name for page in pages if LOADED.search(page.read_text())] == []
