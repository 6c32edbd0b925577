"""Every hook has its heading and its exact signature in the guide, and a test that is named after it."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from partage_plugins.hooks import both, node, scheduler
from partage_plugins.testing.catalogue import checks_of

REPOSITORY = Path(__file__).parents[3]
GUIDE = (REPOSITORY / "docs/plugins.md").read_text()
SOURCES: dict[str, ModuleType] = {"both": both, "scheduler": scheduler, "node": node}


def hooks() -> Iterator[tuple[str, ast.FunctionDef]]:
    for module in SOURCES.values():
        for part in ast.parse(inspect.getsource(module)).body:
            if isinstance(part, ast.FunctionDef) and part.name.startswith("partage_"):
                yield part.name, part


HOOKS = dict(hooks())


def signature(function: ast.FunctionDef) -> str:
    assert function.returns is not None
    return f"def {function.name}({ast.unparse(function.args)}) -> {ast.unparse(function.returns)}"


def test_the_hooks_are_all_there() -> None:
    assert set(HOOKS) == {name for module in SOURCES.values() for name in dir(module) if name.startswith("partage_")}


@pytest.mark.parametrize("hook", HOOKS)
def test_the_guide_has_a_heading_and_the_exact_signature(hook: str) -> None:
    section = re.search(rf"^### `{hook}`\n(.*?)(?=^##)", GUIDE, re.DOTALL | re.MULTILINE)
    assert section is not None, f"docs/plugins.md has no heading ### `{hook}`"
    assert f"```python\n{signature(HOOKS[hook])}\n```" in section[1]


@pytest.mark.parametrize("hook", HOOKS)
def test_every_argument_and_result_of_a_hook_is_documented_where_it_is_specified(hook: str) -> None:
    text = ast.get_docstring(HOOKS[hook]) or ""
    for argument in HOOKS[hook].args.args:
        assert re.search(rf"^    {argument.arg}: \S", text, re.MULTILINE), f"{hook} does not say what {argument.arg} is"
    if ast.unparse(HOOKS[hook].returns or ast.Constant(None)) != "None":
        assert "Returns:" in text, f"{hook} does not say what it returns"


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_test_named_after_it(hook: str) -> None:
    pattern = re.compile(rf"^\s*def test_\w*{hook}(_|\b)", re.MULTILINE)
    assert any(pattern.search(path.read_text()) for path in (REPOSITORY / "tests").rglob("test_*.py")), hook


def test_the_guide_has_no_heading_for_a_hook_that_does_not_exist() -> None:
    assert set(re.findall(r"^### `(\w+)`", GUIDE, re.MULTILINE)) == set(HOOKS)


def test_the_guides_example_of_a_subject_can_be_checked() -> None:
    example = re.search(r"```python\n(from partage_plugins\.testing import .*?)```", GUIDE, re.DOTALL)
    assert example is not None
    names: dict[str, Any] = {}
    exec(example[1], names)  # noqa: S102  our own guide
    assert checks_of(names["TestFpga"].subject)
