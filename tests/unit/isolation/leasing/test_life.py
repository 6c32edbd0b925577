"""The table of a lease's life, and its drawing."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from partage_isolation.leases.life import LINES, OPEN, TRAITS, TRANSITIONS, LeaseEvent, Life, after, mermaid
from partage_isolation.leases.line import LineState
from partage_isolation.leases.policies import NAMES

PAGE: Final = (Path(__file__).parents[4] / "docs/leases.md").read_text()


def test_the_drawing_in_the_documents_is_made_from_the_table() -> None:
    assert f"```mermaid\n{mermaid()}\n```" in PAGE


def test_each_state_can_be_reached() -> None:
    reached = {Life.EMPTY}
    for _ in Life:
        reached |= {then for (state, _), then in TRANSITIONS.items() if state in reached}
    assert reached == set(Life)


def test_each_event_happens_to_some_state() -> None:
    assert {event for _, event in TRANSITIONS} == set(LeaseEvent)


def test_from_each_state_the_container_can_leave() -> None:
    assert all(after(state, LeaseEvent.LEFT) is Life.EMPTY for state in Life if state is not Life.EMPTY)


def test_whoever_is_open_is_closed_before_he_can_wait_again() -> None:
    assert all((state, LeaseEvent.WANTED) not in TRANSITIONS for state in OPEN)
    assert {after(state, LeaseEvent.ENDED) for state in OPEN} == {Life.CLOSING}


def test_lines_are_open_for_what_is_open_and_nothing_else() -> None:
    assert {life for life, line in LINES.items() if line is not LineState.CLOSED} == OPEN
    assert {life for life, traits in TRAITS.items() if traits.is_open} == OPEN


def test_who_is_open_or_waits_or_has_work_under_way_is_busy() -> None:
    assert {life for life, traits in TRAITS.items() if traits.is_busy} == OPEN | {Life.WAITING, Life.CLOSING}


def test_what_is_not_in_the_table_does_not_happen() -> None:
    with pytest.raises(KeyError):
        after(Life.IDLE, LeaseEvent.ENDED)


def test_the_page_names_each_policy() -> None:
    page = (Path(__file__).parents[4] / "docs/isolation.md").read_text()
    assert all(f"| `{name}` |" in page for name in NAMES)
