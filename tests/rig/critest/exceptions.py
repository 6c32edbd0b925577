"""Whether a run went as expected: no failures that exceptions.toml does not list, and no passes that it does."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec

from rig.critest.results import Outcome, Result, Run

LIST: Final = Path(__file__).with_name("exceptions.toml")


@dataclass(frozen=True)
class Exemption:
    """A spec that is expected not to pass, always or under a condition."""

    spec: str
    outcome: Outcome
    reason: str
    when: str = ""


class _Group(msgspec.Struct, forbid_unknown_fields=True):
    """Specs with a common reason, as in the file."""

    specs: Annotated[list[str], msgspec.Meta(min_length=1)]
    outcome: Outcome
    reason: Annotated[str, msgspec.Meta(min_length=1)]
    when: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    exempt: list[_Group]


def exemptions(path: Path = LIST) -> tuple[Exemption, ...]:
    """The exemptions of the file, one for each spec and condition."""
    file = msgspec.convert(tomllib.loads(path.read_text()), _File)
    return tuple(
        Exemption(spec, group.outcome, group.reason, group.when) for group in file.exempt for spec in group.specs
    )


def judge(run: Run, exemptions: Iterable[Exemption], conditions: Mapping[str, bool]) -> list[str]:
    """What is wrong, one line each; empty if all is well.

    Exemptions of specs that were not selected have no effect, but must name an existing spec and condition.
    """
    listed = list(exemptions)
    wrong = [*_faults_of_the_list(listed, run, conditions)]
    if not run.selected:
        wrong.append("no spec was selected")
    in_force = {each.spec: each for each in listed if not each.when or conditions.get(each.when)}
    for spec in sorted(run.selected):
        wrong += _faults_of_one(spec, run.results.get(spec), in_force.get(spec))
    return wrong


def _faults_of_the_list(listed: list[Exemption], run: Run, conditions: Mapping[str, bool]) -> Iterator[str]:
    in_force: set[str] = set()
    for each in listed:
        if each.spec not in run.known:
            yield f"listed, but there is no such spec: {each.spec}"
        if each.when and each.when not in conditions:
            yield f"listed for a condition that nobody looks at, {each.when!r}: {each.spec}"
        if not each.when or conditions.get(each.when):
            if each.spec in in_force:
                yield f"listed twice for this machine: {each.spec}"
            in_force.add(each.spec)


def _faults_of_one(spec: str, result: Result | None, exemption: Exemption | None) -> Iterator[str]:
    if result is None:
        yield f"selected, but did not run: {spec}"
        return
    wanted = exemption.outcome if exemption else Outcome.PASSED
    if result.outcome is wanted:
        return
    if exemption is None:
        yield f"{result.outcome}: {spec}: {result.message}"
    else:
        yield f"{result.outcome}, but listed as {wanted} ({exemption.reason}): {spec}: {result.message}".rstrip(": ")
