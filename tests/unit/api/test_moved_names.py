"""A plugin that imports a renamed name gets an error with the new name."""

from __future__ import annotations

import importlib

import pytest


@pytest.mark.parametrize(("old", "new"), [("vocabulary", "api"), ("sides", "framework")])
def test_a_module_that_moved_names_the_new_one(old: str, new: str) -> None:
    with pytest.raises(ImportError, match=rf"partage_plugins\.{old} is now partage_plugins\.{new};"):
        importlib.import_module(f"partage_plugins.{old}.pods")


def test_a_class_that_moved_names_the_new_one() -> None:
    with pytest.raises(ImportError, match=r"partage_plugins\.api\.Room is now Resources;"):
        exec("from partage_plugins.api import Room", {})  # noqa: S102  what a plugin's author has written


def test_what_never_was_there_is_missed_as_ever() -> None:
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from partage_plugins.api import Nothing", {})  # noqa: S102  as above
