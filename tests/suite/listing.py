"""Lists which tests are in `make test`, and which only in `make test-all`, with reasons.

It parses the sources without running any. The list is kept in tests/suite/list.txt, so that a change that loses a test,
or moves one out of `make test`, is visible in a review.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from suite import plan

_MARK = "extended"


def listing(root: Path) -> str:
    """A line for each file of tests with their number, and below it those only in `make test-all`; then such jobs."""
    files = sorted([*(root / "tests").rglob("test_*.py"), *(root / "plugins").glob("*/tests/**/test_*.py")])
    lines = [line for file in files for line in _of_file(file, str(file.relative_to(root)))]
    jobs = [f"job {job.name}: make test-all alone: {job.extended}" for job in plan.everything() if job.extended]
    return "".join(f"{line}\n" for line in (*lines, *jobs))


def _of_file(file: Path, name: str) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    tests = list(_tests(tree.body))
    yield f"{name}: {len(tests)}"
    everywhere = next((why for each in tree.body if isinstance(each, ast.Assign) and (why := _why([each.value]))), None)
    for test in tests:
        if why := everywhere or _why(test.decorator_list):
            yield f"    {test.name}: make test-all alone: {why}"


def _tests(body: list[ast.stmt]) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for each in body:
        if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test"):
            yield each
        elif isinstance(each, ast.ClassDef) and each.name.startswith("Test"):
            yield from _tests(each.body)


def _why(marks: list[ast.expr]) -> str | None:
    """The reason of an `extended` mark, at any depth in these expressions."""
    calls = (node for mark in marks for node in ast.walk(mark) if isinstance(node, ast.Call))
    marked = (call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == _MARK)
    return next((str(ast.literal_eval(call.args[0])) for call in marked), None)
