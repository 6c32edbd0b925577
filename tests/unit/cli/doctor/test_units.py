"""A unit and its drop-ins yield the command line that systemd would run; flags mean what they mean to kubelet."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_cli.doctor.units import Source, UnitService, Unreadable, Word, last_use, split_leniently, words
from partage_cli.doctor.variables import environment_file


def started(*files: str, environment: str = "") -> list[str]:
    service = UnitService()
    for number, text in enumerate(files):
        service.add(Source(str(number), text))
    found = {each: Source("env", environment) for each in service.environment_files}
    return [word.text for word in service.command_line(found)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a  b\tc", ["a", "b", "c"]),
        ("'a b' \"c d\"", ["a b", "c d"]),
        ("a'b c'd", ["ab cd"]),
        ("''", [""]),
        ('"a\\"b"', ['a"b']),
        ("'a\\'b'", ["a'b"]),  # unlike in a shell
        ("a\\sb \\x", ["a b", "\\x"]),
        ("", []),
    ],
)
def test_words_are_split_by_systemds_rules(text: str, found: list[str]) -> None:
    assert words(text) == found


@given(st.text("ab '\"\t", max_size=30))
def test_without_backslashes_words_are_those_of_a_shell(text: str) -> None:
    try:
        expected = shlex.split(text)
    except ValueError:
        with pytest.raises(Unreadable):
            words(text)
        assert split_leniently(text) == text.split()
        return
    assert words(text) == expected


def test_a_drop_in_empties_and_sets_the_command_line() -> None:
    unit, dropin = "[Service]\nExecStart=/a --one\n", "[Service]\nExecStart=\nExecStart=-/b --two\n"
    assert started(unit) == ["/a", "--one"]
    assert started(unit, dropin) == ["/b", "--two"]
    assert started(unit, "[Service]\nExecStart=\n") == []


def test_only_the_section_of_the_service_counts() -> None:
    unit = "[Service]\n# ExecStart=/y\n; ExecStart=/y\nExecStart=/a\n"
    assert started(f"[Unit]\nExecStart=/x\n{unit}[Install]\nExecStart=/z") == ["/a"]


def test_a_line_goes_on_after_a_backslash_and_over_comments() -> None:
    assert started("[Service]\nExecStart=/a \\\n  --b \\\n# why\n  --c\n") == ["/a", "--b", "--c"]
    assert started("[Service]\nExecStart=/a \\") == ["/a"]


def test_variables_are_whole_words_split_or_texts_put_in() -> None:
    unit = "[Service]\nEnvironment='A=--x --y' B=z\nExecStart=/a $A --b=${B}${NONE} $NONE $$C 100%%"
    assert started(unit) == ["/a", "--x", "--y", "--b=z", "$C", "100%"]


def test_a_file_of_variables_beats_the_units_own_and_an_unset_beats_both() -> None:
    unit = "[Service]\nEnvironment=A=unit B=unit\nEnvironmentFile=-/f\nUnsetEnvironment=C\nExecStart=/a $A $B $C"
    assert started(unit, environment="A=file\nC=file") == ["/a", "file", "unit"]


def test_an_empty_assignment_forgets_those_before() -> None:
    unit = "[Service]\nEnvironment=A=1\nEnvironmentFile=/f\nUnsetEnvironment=B\nExecStart=/a $A $B"
    dropin = "[Service]\nEnvironment=\nEnvironment=B=2\nEnvironmentFile=\nUnsetEnvironment=\n"
    assert started(unit, dropin, environment="A=file") == ["/a", "2"]


def test_a_line_that_cannot_be_read_takes_the_place_of_none_that_can() -> None:
    service = UnitService()
    service.add(Source("good", "[Service]\nExecStart=/a\n"))
    service.add(Source("bad", "[Service]\nExecStart=/b 'not closed\n"))
    assert service.command_line({}) == [Word("/a", "good")]
    assert service.unreadable == ["bad: ExecStart: a quote ' is not closed"]


def test_each_word_knows_the_file_that_it_comes_from() -> None:
    service = UnitService()
    service.add(Source("unit", "[Service]\nEnvironment=A=1\nEnvironmentFile=/f\nExecStart=/a $A $B"))
    assert service.command_line({"/f": Source("file", "B=2")}) == [("/a", "unit"), ("1", "unit"), ("2", "file")]


@given(st.text("[Service]\nExecStart= $AB{}'\"\\%#", max_size=120))
def test_no_unit_is_too_hostile_to_be_read(text: str) -> None:
    service = UnitService()
    service.add(Source("x", f"[Service]\n{text}"))
    assert all(word.where == "x" for word in service.command_line({}))


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
        ('A=b"c"', 'b"c"'),  # quotes count only at the beginning of a word
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
