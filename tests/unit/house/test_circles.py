"""No module of ours imports itself through others, at runtime or for types alone."""

from __future__ import annotations

import ast
from collections.abc import Container, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from unit.house.sources import modules

pytestmark = pytest.mark.slow


def name_of(path: Path) -> str:
    """The module's import name."""
    parts = [*path.parent.parts] if path.name == "__init__.py" else [*path.with_suffix("").parts]
    return ".".join(parts[next((at for at, part in enumerate(parts) if part.startswith("partage_")), 0) :])


def imported(tree: ast.Module, known: Container[str]) -> Iterator[str]:
    """Imports anywhere in the module, also for types alone; a name may be a module of a package."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            parts = (f"{node.module}.{each.name}" for each in node.names)
            yield from (part if part in known else node.module for part in parts)


def circle(trees: dict[str, ast.Module]) -> list[str]:
    """An import cycle; empty if there is none."""
    graph = {name: (set(imported(tree, trees)) & trees.keys()) - {name} for name, tree in trees.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_module_imports_itself_by_way_of_others() -> None:
    found = circle({name_of(path): tree for path, tree in modules("bundle/partage_bundle").items()})
    assert not found, " -> ".join(found)


def test_imports_for_types_alone_count() -> None:
    for_types = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from p import a"
    trees = {"p": "", "p.a": "from p.b import B", "p.b": for_types}
    assert set(circle({name: ast.parse(text) for name, text in trees.items()})) == {"p.a", "p.b"}
