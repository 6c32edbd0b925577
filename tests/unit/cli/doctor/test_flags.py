"""A flag holds what kubelet takes it for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.doctor.units import Word, last_use


def value(*argv: str) -> str | None:
    use = last_use([Word(each, "x") for each in ("kubelet", *argv)], "a-b")
    return None if use is None else use.text


@pytest.mark.parametrize(
    ("argv", "found"),
    [
        (("--a-b=1",), "1"),
        (("--a-b", "1"), "1"),
        (("--a_b=1",), "1"),
        (("--a-b=1", "--a-b", "2"), "2"),
        (("--a-b", "1", "--a-b=2"), "2"),
        (("--a-b=",), ""),
        (("--a-b=c=d",), "c=d"),
        (("--a-b", "--v"), "--v"),
        (("--a-b",), None),
        (("-a-b=1", "a-b=1", "--a-bc=1", "--a=1"), None),
        (("--", "--a-b=1"), None),
        ((), None),
    ],
)
def test_the_last_value_holds(argv: tuple[str, ...], found: str | None) -> None:
    assert value(*argv) == found


@given(st.lists(st.tuples(st.sampled_from(["a-b", "a_b", "v", "config"]), st.text("a=-/ ", max_size=5))))
def test_of_any_command_line(pairs: list[tuple[str, str]]) -> None:
    wanted = [text for name, text in pairs if name.replace("_", "-") == "a-b"]
    assert value(*(f"--{name}={text}" for name, text in pairs)) == (wanted[-1] if wanted else None)
