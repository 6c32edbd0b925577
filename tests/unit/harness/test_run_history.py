"""The history of runs: which states were green, and which tests were unsteady."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from suite.history import Checkout, History, Run, last

PARTS = ("unit", "real")
UNSTEADY = {"a.py::test_a": ": not within 90 s"}


def a_run(commit: str = "c" * 40, **more: object) -> Run:
    said = {"kind": "test", "commit": commit, "clean": True, "seconds": 900, "green": True, **more}
    return Run(**said)  # type: ignore[arg-type]


def test_only_a_whole_run_that_was_green_is_among_those_that_passed(tmp_path: Path) -> None:
    history = History(tmp_path / "partage")
    history.remember(a_run("green"), PARTS)
    history.remember(a_run("red", green=False), PARTS)
    history.remember(a_run("part", jobs=("lint",)), PARTS)
    assert [run.commit for run in History(tmp_path / "partage").passed()] == ["green"]


def test_parts_that_were_green_on_one_commit_make_a_whole_run(tmp_path: Path) -> None:
    history = History(tmp_path)
    unit = a_run(kind="test-all", part="unit", jobs=("unit/cli",), unsteady=UNSTEADY)
    real = a_run(kind="test-all", part="real", jobs=("real/chain",))
    for run in (unit, replace(real, commit="another"), replace(real, green=False), replace(real, clean=False)):
        history.remember(run, PARTS)
        assert not history.passed()
    history.remember(real, PARTS)
    (whole,) = history.passed()
    assert (whole.kind, whole.commit, whole.seconds, whole.unsteady) == ("test-all", real.commit, 1800, UNSTEADY)


def test_of_the_last_nine_runs_with_its_job_those_count_in_which_a_test_was_unsteady(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.remember(a_run(unsteady=UNSTEADY), PARTS)
    for _ in range(8):
        history.remember(a_run(jobs=("real/chain",)), PARTS)
        history.remember(a_run(jobs=("lint",)), PARTS)
    assert history.times_unsteady("a.py::test_a", "real/chain") == 1
    assert history.times_unsteady("a.py::test_b", "real/chain") == 0
    history.remember(a_run(), PARTS)
    assert history.times_unsteady("a.py::test_a", "real/chain") == 0


def test_a_line_that_was_cut_off_is_left_out(tmp_path: Path) -> None:
    history = History(tmp_path)
    history.remember(a_run("whole"), PARTS)
    with (tmp_path / "passed.jsonl").open("a") as file:
        file.write('{"kind": "te\n')
    history.remember(a_run("next"), PARTS)
    assert [run.commit for run in history.passed()] == ["whole", "next"]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    _git(tmp_path, "init", "-q", "-b", "main", str(root))
    _commit(root, "one", 0)
    return root


@pytest.mark.slow
def test_the_newest_green_runs_are_shown_with_whether_head_is_among_them(tmp_path: Path, checkout: Path) -> None:
    history, head = History(tmp_path), Checkout.find(checkout)
    assert last(history, checkout) == [
        "no whole run has passed here yet",
        f"HEAD {head.commit[:8]} has not passed",
        "main has no green test-all",
    ]
    history.remember(a_run(head.commit, unsteady=UNSTEADY, at="2026-01-01T00:00:00+00:00"), PARTS)
    assert last(history, checkout)[:2] == [
        f"2026-01-01T00:00:00+00:00  test      {head.commit[:8]}  clean    900 s  1 unsteady: a.py::test_a",
        f"HEAD {head.commit[:8]} has passed make test",
    ]
    (checkout / "new").touch()
    assert last(history, checkout)[1].endswith("; what is not committed was in none of them")
    assert not Checkout.find(checkout).clean


@pytest.mark.slow
def test_it_is_said_when_main_is_three_days_or_sixty_commits_past_a_green_test_all(
    tmp_path: Path, checkout: Path
) -> None:
    history, head = History(tmp_path), Checkout.find(checkout).commit
    history.remember(a_run(head, kind="test-all"), PARTS)
    _commit(checkout, "two", 2 * 86400)
    assert "test-all" not in last(history, checkout)[-1]
    _commit(checkout, "three", 4 * 86400)
    assert last(history, checkout)[-1] == f"main is 4.0 days and 2 commits past the newest green test-all, {head[:8]}"


def test_outside_a_checkout_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert Checkout.find(tmp_path) == Checkout()


def _commit(root: Path, title: str, seconds: int) -> None:
    stamp = f"{1_700_000_000 + seconds} +0000"
    who = ("-c", "user.name=a", "-c", "user.email=a@example.com")
    words = ("git", "-C", str(root), *who, "commit", "-q", "--allow-empty", "-m", title)
    subprocess.run(
        words, check=True, env={"GIT_COMMITTER_DATE": stamp, "GIT_AUTHOR_DATE": stamp, "PATH": "/usr/bin:/bin"}
    )


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", "-C", str(folder), *words], check=True)
