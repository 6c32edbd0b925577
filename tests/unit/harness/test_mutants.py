"""The mutation soak: its table matches this checkout, and regressions are reported."""

from __future__ import annotations

import ast

from soak.mutants import MODELS, ROOT, mutants, worse

SOURCE = """
def is_full(used: int, most: int) -> bool:
    return used >= most and most != 0
"""


def test_each_module_and_its_tests_are_where_the_table_says() -> None:
    for name, model in MODELS.items():
        assert model.file.endswith(model.module.replace(".", "/") + ".py"), name
        assert [path for path in (model.file, *model.tests) if not (ROOT / path).exists()] == [], name


def test_a_mutant_is_one_small_change() -> None:
    found = {each.text: ast.unparse(each.tree) for each in mutants(SOURCE)}
    assert set(found) == {
        "return used >= most and most != 0 -> return None",
        "used >= most and most != 0 -> used >= most or most != 0",
        "used >= most -> used > most",
        "most != 0 -> most == 0",
        "0 -> 1",
    }
    assert "return used > most and most != 0" in found["used >= most -> used > most"]


def test_what_was_killed_and_lives_is_worse_and_so_is_a_smaller_part() -> None:
    before = ["lifecycle killed a -> b", "lifecycle killed c -> d", "lifecycle survived e -> f"]
    assert worse(before, before) == []
    assert worse(before, ["lifecycle survived a -> b", "lifecycle killed c -> d", "lifecycle killed e -> f"]) == [
        "lifecycle survived a -> b"
    ]
    assert worse(before, ["lifecycle killed g -> h", "lifecycle survived i -> j"]) == [
        "lifecycle: 50.0% are killed; it was 66.7%"
    ]
