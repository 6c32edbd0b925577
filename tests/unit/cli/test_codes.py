"""Every error type that ends a command has an exit code, and every code one row in the document."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import partage_cli
from partage_cli.codes import CODES, code_of, rows
from partage_plugins.errors import PartageError

pytestmark = pytest.mark.slow  # it imports every command
TROUBLE = Path(__file__).parents[3] / "docs/troubleshooting.md"


def kinds(above: type[BaseException]) -> Iterator[type[BaseException]]:
    """Our subclasses of it."""
    for each in above.__subclasses__():
        if each.__module__.startswith("partage_"):
            yield each
            yield from kinds(each)


def test_every_kind_of_error_of_ours_has_a_code_of_more_than_that_it_is_expected() -> None:
    for module in pkgutil.walk_packages(partage_cli.__path__, "partage_cli."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found = {each: code_of(each) for each in (*kinds(PartageError), *kinds(click.ClickException))}
    assert len(found) > 50
    assert [kind for kind, code in found.items() if code is None or code.code == "PTG200"] == []


def test_every_kind_that_is_named_is_there() -> None:
    for name in CODES:
        module, _, kind = name.rpartition(".")
        assert isinstance(getattr(importlib.import_module(module), kind), type), name


def test_every_code_has_one_meaning_and_one_row() -> None:
    codes = [each.code for each in rows()]
    assert len(codes) == len(set(codes))
    text = TROUBLE.read_text()
    assert [code for code in codes if text.count(f"| `{code}` |") != 1] == []


def test_a_defect_has_none_and_errors_of_the_system_have_one() -> None:
    assert code_of(ValueError) is None
    assert code_of(PermissionError) == CODES["builtins.OSError"]
