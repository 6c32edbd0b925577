"""Compares the facts from a driver with recorded ones.

A fact is a line `area.case.fact = value`; the last one of each case is its outcome. Only recorded facts are compared,
so a record may be partial. A case that was not run, or that either side skipped, is left out. A difference listed in
the file of differences is reported and excused; an entry there that no longer excuses anything is stale. `tools/real
facts` prints it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final

NOTHING: Final = "nothing"
"""Replaces the value of a missing fact."""
_LINE: Final = re.compile(r"([a-z][\w]*\.[a-z][\w]*)\.(\w+) = ?(.*)", re.ASCII)


class Unreadable(Exception):
    """A file is invalid; the message says where and why."""


@dataclass(frozen=True)
class Listed:
    """A known difference: one pattern of facts' names."""

    pattern: str
    reason: str


@dataclass(frozen=True)
class Difference:
    """A fact that differs from its record."""

    fact: str
    told: str
    recorded: str
    reason: str | None
    """Why the difference is known."""


@dataclass(frozen=True)
class Comparison:
    compared: int
    differences: tuple[Difference, ...]
    stale: tuple[str, ...]
    """Patterns that excuse nothing."""

    @property
    def fine(self) -> bool:
        """Whether nothing needs attention."""
        return not self.stale and all(one.reason is not None for one in self.differences)


# ---- reading


def read_facts(text: str, name: str) -> dict[str, str]:
    """The facts of a file by name; empty lines and comments are skipped."""
    facts: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise Unreadable(f"{name}:{number}: {line[:60]!r}: expected 'area.case.fact = value'")
        fact = f"{found[1]}.{found[2]}"
        if facts.setdefault(fact, found[3]) != found[3]:
            raise Unreadable(f"{name}:{number}: {fact}: told twice, and differently; keep one of the lines")
    return facts


def read_listed(text: str, name: str) -> list[Listed]:
    """The entries of a file of differences."""
    try:
        content: object = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise Unreadable(f"{name}: {error}") from error
    match content:
        case {"difference": [*entries], **more} if not more:
            return [one for number, entry in enumerate(entries, start=1) for one in _entry(entry, f"{name}: {number}")]
        case _ if content:
            raise Unreadable(f"{name}: expected nothing but [[difference]] tables")
        case _:
            return []


def _entry(entry: object, where: str) -> Iterator[Listed]:
    match entry:
        case {"facts": [*facts], "reason": str(reason), **more} if facts and reason.strip() and not more:
            for pattern in facts:
                if not isinstance(pattern, str):
                    raise Unreadable(f"{where}. difference: facts: expected names, found {pattern!r}")
                yield Listed(pattern, reason)
        case _:
            raise Unreadable(f"{where}. difference: expected facts = [names] and reason = a text, and nothing else")


# ---- comparing


def compare(told: Mapping[str, str], recorded: Mapping[str, str], listed: Sequence[Listed]) -> Comparison:
    """Every recorded fact of a case that was run and that neither side skipped."""
    asked = {_case(fact) for fact in told}
    skipped = {_case(fact) for side in (told, recorded) for fact, value in side.items() if _is_skipped(fact, value)}
    facts = [fact for fact in recorded if _case(fact) in asked - skipped]
    differences = tuple(
        Difference(fact, told.get(fact, NOTHING), recorded[fact], _reason(fact, listed))
        for fact in sorted(facts)
        if told.get(fact) != recorded[fact]
    )
    stale = _stale(listed, facts, {one.fact for one in differences}, asked, told)
    return Comparison(len(facts), differences, tuple(stale))


def _case(fact: str) -> str:
    return ".".join(fact.split(".")[:2])


def _is_skipped(fact: str, value: str) -> bool:
    return fact.endswith(".outcome") and value.startswith("skipped")


def _reason(fact: str, listed: Sequence[Listed]) -> str | None:
    return next((one.reason for one in listed if fnmatchcase(fact, one.pattern)), None)


def _stale(
    listed: Sequence[Listed], facts: Sequence[str], differing: set[str], asked: set[str], told: Mapping[str, str]
) -> Iterator[str]:
    """Entries that match only equal facts, or none of a case that was run; this record can't judge others."""
    for pattern in dict.fromkeys(one.pattern for one in listed):
        matched = [fact for fact in facts if fnmatchcase(fact, pattern)]
        unknown = _case(pattern) in asked and not any(fnmatchcase(fact, pattern) for fact in (*told, *facts))
        if unknown or (matched and differing.isdisjoint(matched)):
            yield pattern


# ---- telling


def lines_of(comparison: Comparison) -> Iterator[str]:
    """A line for each difference and each stale entry."""
    for one in comparison.differences:
        verdict, why = ("differs", "") if one.reason is None else ("listed ", f" ({one.reason})")
        yield f"{verdict} {one.fact}: told {one.told}, recorded {one.recorded}{why}"
    for pattern in comparison.stale:
        yield f"stale   {pattern}: differs no longer; take it out of the list of differences"


def summary(comparison: Comparison) -> str:
    """A summary for people, after the lines."""
    known = sum(one.reason is not None for one in comparison.differences)
    unlisted = len(comparison.differences) - known
    return f"{comparison.compared} facts compared: {unlisted} differ, {known} are listed, {len(comparison.stale)} stale"
