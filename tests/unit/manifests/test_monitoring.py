"""Rules and dashboards query existing metrics, and every alert has its runbook."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rig.identity.permissions import FOLDER
from support.observing import DASHBOARDS, RUNBOOKS, alerts, dashboard, queries, records

DOCS = FOLDER.parent / "docs"
NAMED = re.compile(r"^\| (`partage_.*?) \|", re.MULTILINE)
ELSEWHERE = frozenset(("partage_build_info", "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"))
"""Prefixes of metrics that every daemon has, and of NVIDIA's exporter."""


def documented() -> Iterator[str]:
    """The metrics in all pages' tables, which are generated from the code; for histograms also with their suffixes."""
    for page in DOCS.glob("*.md"):
        for cell in NAMED.findall(page.read_text()):
            for name in re.findall(r"partage_\w+", cell):
                yield name
                if name.endswith("_seconds"):
                    yield from (f"{name}_{suffix}" for suffix in ("bucket", "count", "sum"))


def test_every_query_asks_for_metrics_and_records_that_exist() -> None:
    known = {*documented(), *records(), *ELSEWHERE}
    asked = {query.where: query.names - known for query in queries()}
    assert {where: names for where, names in asked.items() if names} == {}
    assert all(query.names for query in queries())


def test_every_alert_leads_to_its_runbook_and_every_runbook_is_of_an_alert() -> None:
    headings = re.findall(r"^## (Partage\w+)$", RUNBOOKS, re.MULTILINE)
    assert sorted(headings) == sorted(alerts())
    for name, rule in alerts().items():
        assert rule["annotations"]["runbook_url"] == f"docs/runbooks.md#{name.lower()}"
        assert rule["labels"]["severity"] in {"critical", "warning", "info"}


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_a_dashboard_is_one_that_grafana_shows_whole(path: Path) -> None:
    board = dashboard(path)
    assert board["uid"] == path.stem
    panels: list[Any] = board["panels"]
    assert len({panel["id"] for panel in panels}) == len({panel["title"] for panel in panels}) == len(panels)
    taken = set[tuple[int, int]]()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (column, row)
            for column in range(place["x"], place["x"] + place["w"])
            for row in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24
        assert not taken & cells, panel["title"]
        taken |= cells
    declared = {variable["name"] for variable in board["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]\w*)", json.dumps(board)))
    assert used <= declared, "variables that nobody chooses"
    assert {dashboard(path)["uid"] for path in DASHBOARDS} == {
        f"partage-{name}" for name in ("card", "fleet", "scheduler", "tenant")
    }
