"""Parses a systemd service into variables and command line; each word keeps the file that it comes from.

Pure. Only what affects a command line is read: ``Environment=``, ``EnvironmentFile=``, ``UnsetEnvironment=`` and
``ExecStart=`` of ``[Service]``. Words are split by systemd's rules, which differ from a shell's: quotes may start
anywhere, and backslash escapes mean what they mean in C, inside all quotes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from partage_cli.doctor.variables import environment_file

_BLANKS: Final = " \t\n\r"
_ESCAPES: Final = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "s": " ",
    **{each: each for each in "\\\"'"},
}
_VARIABLE: Final = re.compile(r"\$\$|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|%%")
_WHOLE: Final = re.compile(r"\$(?P<name>[A-Za-z_][A-Za-z0-9_]*)")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BEFORE_PROGRAM: Final = "@-:+!|"


class Unreadable(ValueError):
    """A line that systemd would ignore, with the reason."""


class Word(NamedTuple):
    """One word of a command line, and the file that it comes from."""

    text: str
    where: str


@dataclass(frozen=True)
class Source:
    """A file's text, and its path as shown to people."""

    where: str
    text: str


def words(text: str) -> list[str]:
    """Split a line into words; raises `Unreadable` for an unclosed quote."""
    found: list[str] = []
    word, quote, inside = "", "", False
    letters = iter(text)
    for letter in letters:
        if quote and letter == quote:
            quote = ""
        elif letter == "\\":
            word, inside = word + _escaped(next(letters, "")), True
        elif quote:
            word += letter
        elif letter in "\"'":
            quote, inside = letter, True
        elif letter in _BLANKS:
            found += [word] if inside else []
            word, inside = "", False
        else:
            word, inside = word + letter, True
    if quote:
        raise Unreadable(f"a quote {quote} is not closed")
    return [*found, word] if inside else found


def _escaped(letter: str) -> str:
    """Unknown escapes are kept as written."""
    return _ESCAPES.get(letter, f"\\{letter}")


class UnitService:
    """A service merged from its unit and then its drop-ins; later settings win."""

    def __init__(self) -> None:
        self._assigned: list[Word] = []
        self.environment_files: list[str] = []
        """As written: a leading dash makes a file optional."""
        self._unset: list[str] = []
        self._command: Word | None = None
        self.unreadable: list[str] = []

    def add(self, source: Source) -> None:
        for name, value in _service_lines(source.text):
            try:
                self._take(name, value, source.where)
            except Unreadable as error:
                self.unreadable.append(f"{source.where}: {name}: {error}")

    def command_line(self, files: Mapping[str, Source]) -> list[Word]:
        """The words that the program is started with; `files` are the readable environment files."""
        if self._command is None:
            return []
        variables = {name: (value, where) for (name, value), where in _assignments(self._assigned)}
        for named in self.environment_files:
            source = files.get(named)
            if source is not None:
                variables |= {name: (value, source.where) for name, value in environment_file(source.text).items()}
        for name in self._unset:
            variables.pop(name, None)
        return list(_expanded(self._command, variables))

    def _take(self, name: str, value: str, where: str) -> None:
        match name, value:
            case "Environment", "":
                self._assigned.clear()
            case "Environment", _:
                self._assigned += [Word(word, where) for word in words(value)]
            case "EnvironmentFile", "":
                self.environment_files.clear()
            case "EnvironmentFile", _:
                self.environment_files.append(value)
            case "UnsetEnvironment", "":
                self._unset.clear()
            case "UnsetEnvironment", _:
                self._unset += words(value)
            case "ExecStart", _:
                words(value)  # raises first, so that an unreadable ExecStart replaces no readable one
                self._command = Word(value, where) if value else None
            case _:
                pass


def _service_lines(text: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in _joined(text):
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line:
            name, _, value = line.partition("=")
            yield name.strip(_BLANKS), value.strip(_BLANKS)


def _joined(text: str) -> Iterator[str]:
    """Lines without comments, with continuations joined: a trailing backslash continues, across comments in between."""
    begun = ""
    for raw in text.split("\n"):
        line = raw.strip(_BLANKS)
        if line[:1] in {"#", ";"}:
            continue
        if line.endswith("\\"):
            begun += line[:-1] + " "
            continue
        if begun or line:
            yield begun + line
        begun = ""
    if begun:
        yield begun


def _assignments(assigned: Iterable[Word]) -> Iterator[tuple[tuple[str, str], str]]:
    for word in assigned:
        name, equals, value = word.text.partition("=")
        if equals and _NAME.fullmatch(name):
            yield (name, value), word.where


def _expanded(command: Word, variables: Mapping[str, tuple[str, str]]) -> Iterator[Word]:
    for number, word in enumerate(words(command.text)):
        if not number:
            yield Word(word.lstrip(_BEFORE_PROGRAM), command.where)
        elif whole := _WHOLE.fullmatch(word):
            value, where = variables.get(whole["name"], ("", command.where))
            yield from (Word(part, where) for part in split_leniently(value))
        else:
            yield Word(_VARIABLE.sub(lambda match: _substitute(match, variables), word), command.where)


def split_leniently(value: str) -> list[str]:
    """The words of a variable's value; if its quotes don't match, it is split at blanks."""
    try:
        return words(value)
    except Unreadable:
        return value.split()


def _substitute(match: re.Match[str], variables: Mapping[str, tuple[str, str]]) -> str:
    name = match["name"]
    return match[0][0] if name is None else variables.get(name, ("", ""))[0]


def last_use(argv: Sequence[Word], flag: str) -> Word | None:
    """The value of the flag's last use, and where it is written; None if the flag is not given."""
    found: Word | None = None
    rest = iter(argv)
    for word in rest:
        if word.text == "--":
            break
        name, equals, value = word.text.partition("=")
        if name.replace("_", "-") != f"--{flag}":
            continue
        if equals:
            found = Word(value, word.where)
        elif (following := next(rest, None)) is not None:
            found = following
    return found
