"""The guide has a heading with the exact signature of every hook, and a test is named after it."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec.yaml
import pytest

from partage_plugins.api import GPU
from partage_plugins.errors import DecodeError
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.hooks import SCHEDULER_GROUP, both, node, scheduler
from partage_plugins.registry.entry_points import from_paths
from partage_plugins.testing.suite import checks_of
from partage_scheduler.decision import Ledger
from support.dialect_rows import Row, all_plugins

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
    pattern = re.compile(rf"\w*{hook}(_|\b)")
    assert any(map(pattern.match, names_of_tests())), hook


@cache
def names_of_tests() -> list[str]:
    """All test names, without `test_`."""
    files = (REPOSITORY / "tests").rglob("test_*.py")
    return [name for file in files for name in re.findall(r"^\s*def test_(\w+)", file.read_text(), re.MULTILINE)]


def test_the_guide_has_no_heading_for_a_hook_that_does_not_exist() -> None:
    assert set(re.findall(r"^### `(\w+)`", GUIDE, re.MULTILINE)) == set(HOOKS)


def block(language: str, has: str) -> str:
    """The only block of that language that contains `has`."""
    (found,) = (text for text in re.findall(rf"```{language}\n(.*?)```", GUIDE, re.DOTALL) if has in text)
    return str(found)


def test_the_guides_example_of_a_subject_can_be_checked() -> None:
    names: dict[str, Any] = {}
    exec(block("python", "test_fpga = Subject"), names)  # noqa: S102  our own guide
    assert checks_of(names["test_fpga"])


def test_the_guides_dialect_keeps_to_its_rows_beside_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("partage_dialects.percent")
    exec(block("python", "class PercentDialect"), module.__dict__)  # noqa: S102  our own guide
    monkeypatch.setitem(sys.modules, module.__name__, module)
    said = tomllib.loads(block("toml", "percent-dialect"))["project"]["entry-points"][SCHEDULER_GROUP]
    plugins = all_plugins()
    plugins.load(from_paths(said))
    framework = SchedulerFramework(plugins, Ledger())
    taken, refused = msgspec.yaml.decode(block("yaml", "percent"), type=list[Row])
    request = framework.requests(taken.read())
    assert {name: {GPU.name: ask} for name, ask in request.of(GPU).items()} == taken.expected
    assert refused.refused is not None
    with pytest.raises(DecodeError, match=refused.refused):
        framework.requests(refused.read())
