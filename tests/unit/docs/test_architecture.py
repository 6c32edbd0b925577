"""The architecture page names existing folders and functions."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from support.fences import ROOT

PAGE = (ROOT / "docs/architecture.md").read_text()
STEPS = re.findall(r"^\d+\. `([^:`]+):(\w+)`$", PAGE, re.MULTILINE)
FOLDERS = re.findall(r"^- ((?:`[^`]+`(?:, | → )?)+):", PAGE, re.MULTILINE)


def functions_in(file: Path) -> set[str]:
    """Names of the functions of a Python or C file; for C also those defined by HOOK_CALL."""
    text = file.read_text()
    if file.suffix == ".py":
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
        return {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)}
    return set(re.findall(r"^(?:HOOK_CALL\(|[A-Za-z][\w *]*?[ *])(\w+)(?:\(|,)", text, re.MULTILINE))


def test_there_are_three_flows() -> None:
    assert len(re.findall(r"^1\. `", PAGE, re.MULTILINE)) == 3


@pytest.mark.parametrize(("path", "function"), STEPS, ids=[name for _, name in STEPS])
def test_each_step_of_a_flow_exists(path: str, function: str) -> None:
    assert function in functions_in(ROOT / path)


def test_each_folder_of_the_tree_exists() -> None:
    named = [name for line in FOLDERS for name in re.findall(r"`([^`<]+)`", line)]
    assert len(named) >= 15
    assert not [name for name in named if not (ROOT / name).is_dir()]
