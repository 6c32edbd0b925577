"""Messages of expected errors say what failed, on what, and what to do, in one line that is safe to print."""

from __future__ import annotations

import pytest

from partage_plugins import errors
from partage_plugins.errors import DecodeError, PartageError, PluginError, PluginFailed, Refused


def every(base: type[PartageError]) -> set[type[PartageError]]:
    return {base}.union(*(every(sub) for sub in base.__subclasses__() if sub.__module__ == errors.__name__))


def test_the_tree_in_the_docstring_is_the_tree_in_the_code() -> None:
    assert errors.__doc__ is not None
    drawn = [line.lstrip(" │├└─").split()[0] for line in errors.__doc__.splitlines() if "─ " in line]
    assert {"PartageError", *drawn} == {error.__name__ for error in every(PartageError)}
    assert issubclass(errors.DialectConflict, Refused)
    assert issubclass(PluginFailed, PluginError)


def test_a_decode_error_says_what_where_which_and_what_is_allowed() -> None:
    error = DecodeError("allocation", path="$.gen", value="0", allowed="an integer")
    assert str(error) == "allocation: $.gen is 0; allowed: an integer"


@pytest.mark.parametrize("letter", ["x", "\n", "\x1b", "\x9b", "\u202e", "\ud800", "\U000e0001", "é"])
def test_outside_text_is_shortened_and_cannot_control_a_terminal(letter: str) -> None:
    error = DecodeError("allocation", path=letter * 9999, value=letter * 9999, allowed=letter * 9999)
    said = str(error)
    assert len(said) < 600
    assert said.isprintable()
    assert len(repr(error.args)) < 2000
    said.encode()


def test_a_text_of_the_longest_length_is_shown_whole() -> None:
    value = "v" * 120
    assert DecodeError("a", path="$", value=value, allowed="b").value == value
    assert DecodeError("a", path="$", value=value + "v", allowed="b").value == "v" * 119 + "…"


def test_a_plugins_error_names_plugin_and_hook() -> None:
    assert str(PluginFailed("fpga", "partage_fits", "it raised")) == "plugin fpga: partage_fits: it raised"
