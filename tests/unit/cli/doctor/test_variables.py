"""Environment files are read by systemd's rules, whatever stands in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.doctor.variables import environment_file

NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,8}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r"), max_size=40)


def quoted(value: str) -> str:
    return '"' + "".join(f"\\{each}" if each in '"\\`$' else each for each in value) + '"'


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("A=b", "b"),
        ("A = b c \t", "b c"),
        ("  A=b\r\n", "b"),
        ("A=", ""),
        ('A="b c"', "b c"),
        ("A=\"b\" 'c' d", "bcd"),
        ("A='b\\n$c'", "b\\n$c"),
        ('A="b\\"c\\\\\\$\\x"', 'b"c\\$\\x'),
        ("A=b\\\nc", "bc"),
        ('A="b\nc"', "b\nc"),
        ("A=b\\ ", "b "),
        ('A=b"c"', 'b"c"'),  # quotes count only where a part begins
        ("A=b # c", "b # c"),
        ("A=1\nA=2", "2"),
        ('A="not closed\nB=1', "not closed\nB=1"),
        ("A=b\\", "b"),
    ],
)
def test_a_value_is_what_systemd_takes_it_for(text: str, value: str) -> None:
    assert environment_file(text)["A"] == value


@pytest.mark.parametrize("text", ["", "\n\n", "# A=1", "; A=1", "  # A=1", "A", "export A=1", "1A=1", "=1", "A-B=1"])
def test_what_is_no_assignment_is_passed_over(text: str) -> None:
    assert environment_file(text) == {}
    assert environment_file(f"{text}\nZ=9") == {"Z": "9"}


@given(st.dictionaries(NAMES, TEXTS))
def test_quoted_values_come_back_as_they_went_in(variables: dict[str, str]) -> None:
    text = "\n".join(f"{name}={quoted(value)}" for name, value in variables.items())
    assert environment_file(text) == variables


@given(NAMES, st.lists(TEXTS, min_size=1))
def test_of_many_values_the_last_one_holds(name: str, values: list[str]) -> None:
    text = "\n".join(f"{name}={quoted(value)}" for value in values)
    assert environment_file(text) == {name: values[-1]}


@given(st.text("ab=#;'\"\\ \t\r\n$`", max_size=60))
def test_no_file_is_too_hostile_to_be_read(text: str) -> None:
    for name, value in environment_file(text).items():
        assert name
        assert set(value) <= set(text)
