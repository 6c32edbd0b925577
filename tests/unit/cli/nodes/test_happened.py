"""`partage nodes --events` shows our daemons' reports of the last hour, bounded, and treats them as untrusted text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from partage_cli.doctor.warnings import DaemonEvent
from partage_cli.nodes.happened import Happened, LastHour, as_table, recent
from support.objects import read

NOW: Final = datetime(2026, 3, 2, 12, tzinfo=UTC)


def event(name: str, *, minutes: float, kind: str = "Node", **said: Any) -> DaemonEvent:
    at = (NOW - timedelta(minutes=minutes)).isoformat()
    about = {"kind": kind, "name": name, "namespace": "team-a"}
    words = {
        "reason": "CardLost",
        "message": "gone\x1b[2J",
        "reportingComponent": "partage-advertiser",
        "eventTime": at,
    }
    return read(DaemonEvent, involvedObject=about, **{**words, **said})


def test_what_was_reported_in_the_last_hour_is_shown_the_latest_last() -> None:
    again = {"count": 3, "lastObservedTime": (NOW - timedelta(minutes=1)).isoformat()}
    events = [event("n1", minutes=90, series=again), event("a", minutes=20, kind="Pod"), event("n2", minutes=61)]
    lines = [line.split() for line in as_table(recent(events, NOW, None), NOW).splitlines()[1:]]
    assert lines == [
        ["20m", "pod", "team-a/a", "CardLost", "1", "partage-advertiser", "gone?[2J"],
        ["1m", "node", "n1", "CardLost", "3", "partage-advertiser", "gone?[2J"],
    ]
    assert [each.about for each in recent(events, NOW, "n1").events] == ["node n1"]


def test_of_very_many_the_latest_are_shown_and_the_others_counted() -> None:
    found = recent([event(f"n{at}", minutes=at / 10) for at in range(300)], NOW, None)
    assert (len(found.events), found.earlier, found.events[-1].about) == (200, 100, "node n0")


def test_the_page_has_the_shape_of_what_was_reported() -> None:
    page = (Path(__file__).parents[4] / "docs/configuration.md").read_text()
    block = json.loads(page.partition("`--events` shows")[2].partition("```json")[2].partition("```")[0])
    assert block.keys() == {*LastHour.__struct_fields__}
    assert block["events"][0].keys() == {*Happened.__struct_fields__}
