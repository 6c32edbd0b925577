"""A carried folder is used only if it is complete, for this Python, and of this checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from real_card.carried import COMMIT, PYTHON, SUMS, Unfit, check, sum_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "carried"
    for name, text in {"tests/row.py": "1", "built/flood": "2"}.items():
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        (made / name).write_text(text)
    (made / COMMIT).write_text("0123456789abcdef\n")
    (made / PYTHON).write_text("3.12\n")
    files = (COMMIT, PYTHON, "tests/row.py", "built/flood")
    (made / SUMS).write_text("".join(f"{sum_of(made / name)}  {name}\n" for name in files))
    return made


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/row.py").write_text("1")
    return tmp_path


def test_it_is_used_where_all_is_right(folder: Path, checkout: Path) -> None:
    check(folder, None, "3.12")
    check(folder, checkout, "3.12")


def test_another_python_is_named_with_what_to_do(folder: Path) -> None:
    with pytest.raises(Unfit, match=r"for Python 3\.12, and this is 3\.13: .*PARTAGE_REAL_PYTHON.*--python 3\.13"):
        check(folder, None, "3.13")


@pytest.mark.parametrize("name", ["tests/row.py", "built/flood"])
def test_what_was_lost_or_changed_on_the_way_is_named(folder: Path, name: str) -> None:
    (folder / name).write_text("other")
    with pytest.raises(Unfit, match=f"not whole: {name}"):
        check(folder, None, "3.12")
    (folder / name).unlink()
    with pytest.raises(Unfit, match=f"not whole: {name}"):
        check(folder, None, "3.12")


def test_a_checkout_of_another_commit_is_refused(folder: Path, checkout: Path) -> None:
    (checkout / "tests/row.py").write_text("newer")
    with pytest.raises(Unfit, match=r"of commit 0123456789ab, .*tests/row\.py differs; run `tools/real carry` again"):
        check(folder, checkout, "3.12")


def test_any_other_folder_is_none(tmp_path: Path) -> None:
    with pytest.raises(Unfit, match="no carried folder"):
        check(tmp_path, None, "3.12")
