"""A check that passed is not rerun on the same files, in any checkout; every other check is."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from suite import plan
from suite.passed import Passed
from suite.pool import Done, Job, Pool

CHECK = "echo run >>.git/runs; test ! -e .git/change || touch new.py; ! grep -q wrong main.py"


class Checkouts:
    """Checkouts with one module each, and a common record of passed checks."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder, self._monkeypatch = folder, monkeypatch

    def made(self, name: str, source: str = "right\n") -> Path:
        root = self._folder / name
        root.mkdir()
        subprocess.run(["git", "init", "-q", root], check=True)
        (root / "main.py").write_text(source)
        (root / "notes.txt").write_text("none of its files\n")
        return root

    def checked(self, root: Path, check: str = CHECK, reads: tuple[str, ...] = ("*.py",)) -> Done:
        self._monkeypatch.setattr("suite.pool.ROOT", root)
        passed = Passed(self._folder / "cache/checks")
        pool = Pool(root / ".git/logs", root / ".git", computing=1, waiting=1, passed=passed)
        (done,) = pool.run([Job("check", ("bash", "-c", check), reads=reads)], lambda _: None)
        return done

    @staticmethod
    def runs(root: Path) -> int:
        log = root / ".git/runs"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def checkouts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkouts:
    return Checkouts(tmp_path, monkeypatch)


def test_what_passed_in_one_checkout_is_known_in_another_with_the_same_files(checkouts: Checkouts) -> None:
    one, two = checkouts.made("one"), checkouts.made("two")
    assert not checkouts.checked(one).is_known
    (two / "notes.txt").write_text("changed\n")
    known = checkouts.checked(two)
    assert (known.is_known, known.failures, known.passed, checkouts.runs(two)) == (True, (), 1, 0)


def test_what_failed_is_run_again(checkouts: Checkouts) -> None:
    root = checkouts.made("one", "wrong\n")
    assert [checkouts.checked(root).failures for _ in range(2)] == [("check: exit 1",)] * 2
    assert checkouts.runs(root) == 2


def content(root: Path) -> None:
    (root / "main.py").write_text("other\n")


def mode(root: Path) -> None:
    (root / "main.py").chmod(0o755)


def another_file(root: Path) -> None:
    (root / "new.py").touch()


def a_deleted_file(root: Path) -> None:
    (root / "main.py").rename(root / "gone.txt")


def versions_of_tools(root: Path) -> None:
    (root / "requirements").mkdir()
    (root / "requirements/dev.lock").write_text("mypy==1\n")


def settings_of_tools(root: Path) -> None:
    (root / "mypy.ini").write_text("[mypy]\n")


@pytest.mark.parametrize("change", [content, mode, another_file, a_deleted_file, versions_of_tools, settings_of_tools])
def test_any_change_of_what_it_reads_has_it_run_again(checkouts: Checkouts, change: Callable[[Path], None]) -> None:
    root = checkouts.made("one")
    checkouts.checked(root, "true")
    change(root)
    assert not checkouts.checked(root, "true").is_known


def test_another_command_is_run(checkouts: Checkouts) -> None:
    root = checkouts.made("one")
    checkouts.checked(root)
    assert not checkouts.checked(root, f"{CHECK}; true").is_known


def test_what_passed_while_a_file_changed_is_run_again(checkouts: Checkouts) -> None:
    root = checkouts.made("one")
    (root / ".git/change").touch()
    checkouts.checked(root)
    (root / "new.py").unlink()
    assert not checkouts.checked(root).is_known


def test_a_folder_without_git_knows_nothing(checkouts: Checkouts) -> None:
    root = checkouts.made("one")
    (root / ".git").rename(root / "git")
    (root / ".git").mkdir()
    assert [checkouts.checked(root).is_known for _ in range(2)] == [False, False]


def test_a_cache_that_cannot_be_written_costs_another_run(checkouts: Checkouts, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where its folder would be\n")
    root = checkouts.made("one")
    assert [checkouts.checked(root).is_known for _ in range(2)] == [False, False]
    assert not checkouts.checked(root).failures


def test_no_test_and_nothing_that_waits_for_others_is_taken_as_known() -> None:
    known = [job for job in plan.everything() if job.reads]
    assert {job.name for job in known} == {"pyright", "mypy", "imports", "lint", "format"}
    assert not [job.name for job in known if job.is_pytest or job.waits]
