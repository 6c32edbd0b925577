"""Limits on naming: modules named -ing, equal class names within a component, docstrings without content."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from unit.house.sources import modules

pytestmark = pytest.mark.slow

MOST_IN_ING: Final = 20
FEWEST_WORDS: Final = 3


def in_ing() -> Iterator[str]:
    """Modules and packages whose name ends in -ing."""
    for path in modules():
        name = path.parent.name if path.name == "__init__.py" else path.stem
        if name.endswith("ing"):
            yield str(path)


def docstrings(path: Path, tree: ast.Module) -> Iterator[tuple[str, str]]:
    """The location and text of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text is not None:
                yield f"{path}:{getattr(node, 'lineno', 1)}", text


def test_few_modules_have_names_in_ing() -> None:
    found = list(in_ing())
    assert len(found) <= MOST_IN_ING, f"{len(found)} modules, and {MOST_IN_ING} may:\n" + "\n".join(found)


def test_a_class_name_stands_once_in_a_component() -> None:
    places: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path, tree in modules().items():
        component = "/".join(path.parts[:2])
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[component, node.name].append(f"{path}:{node.lineno}")
    twice = [f"{name}: {', '.join(found)}" for (_, name), found in sorted(places.items()) if len(found) > 1]
    said = f"{len(twice)} class names stand twice in a component:\n" + "\n".join(twice)
    assert not twice, said


def test_a_docstring_says_something() -> None:
    short = [
        f"{place} {text!r}"
        for path, tree in modules().items()
        for place, text in docstrings(path, tree)
        if len(text.split()) < FEWEST_WORDS
    ]
    said = f"{len(short)} docstrings have under {FEWEST_WORDS} words:\n" + "\n".join(short)
    assert not short, said
