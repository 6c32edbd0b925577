"""A plain run selects a few steps of a test by its commit; `make test-all` runs all."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import extent

STEPS = tuple(f"step {number}" for number in range(10))
NAME = "unit/harness: kills"


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(extent.EXTENT, raising=False)
    monkeypatch.setenv(extent.DRAW, "tree-1")
    monkeypatch.setattr(extent, "_draws", {})


def test_test_all_has_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(extent.EXTENT, "all")
    assert extent.is_all()
    assert extent.drawn(NAME, STEPS, 2) == STEPS
    assert extent.draws() == ()


def test_a_plain_run_has_as_many_as_are_asked_for_in_their_order_and_the_same_again() -> None:
    assert not extent.is_all()
    chosen = extent.drawn(NAME, STEPS, 3)
    assert len(chosen) == 3
    assert list(chosen) == sorted(chosen, key=STEPS.index)
    assert extent.drawn(NAME, STEPS, 3) == chosen
    assert extent.drawn(NAME, STEPS, 99) == STEPS


def test_over_some_trees_every_step_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: set[str] = set()
    for number in range(40):
        monkeypatch.setenv(extent.DRAW, f"tree-{number}")
        seen.update(extent.drawn(NAME, STEPS, 2))
    assert seen == set(STEPS)


def test_what_was_drawn_is_said_with_the_command_that_repeats_it(capsys: pytest.CaptureFixture[str]) -> None:
    (chosen,) = extent.drawn(NAME, STEPS, 1)
    (line,) = extent.draws()
    assert capsys.readouterr().out == f"{line}\n"
    assert f"drawn for kills: 1 of 10, {chosen};" in line
    assert "PARTAGE_TEST_DRAW=tree-1 tools/test 'unit/harness'" in line


def test_the_tree_is_that_of_head_and_outside_a_checkout_always_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(extent.DRAW)
    root = Path(__file__).parents[3]
    command = ["git", "-C", str(root), "rev-parse", "HEAD^{tree}"]
    tree = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    extent.drawn(NAME, STEPS, 1)
    assert tree in extent.draws()[0]
    monkeypatch.setattr(extent, "_ROOT", tmp_path)
    extent.drawn(NAME, STEPS, 1)
    assert "PARTAGE_TEST_DRAW=no-tree " in extent.draws()[-1]
