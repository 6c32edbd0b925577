"""Carries out steps in their order, and takes them back in the reverse one, after a death at any point.

A step first looks, and says what it would change and which facts its other half needs. The facts are in the journal
before anything is changed; a run that finds a step begun uses those, since what it would see now is half changed.
Doing a step twice, or half and then whole, is the same as once; so is taking it back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from partage_cli.installation.host import Host
from partage_cli.installation.journal import Journal, StepName

F = TypeVar("F")


@dataclass(frozen=True)
class Change:
    """One thing that a step would change, for people."""

    verb: str
    what: str

    def __str__(self) -> str:
        return f"{self.verb} {self.what}"


class NoFacts(msgspec.Struct, frozen=True):
    """Of a step whose way back needs to know nothing."""


@dataclass(frozen=True)
class Plan(Generic[F]):
    changes: tuple[Change, ...]
    """None: all is as it should be, and the step still asks whether it is."""
    facts: F
    """For the journal: what the way there and the way back must know."""


class Step(Protocol[F]):
    @property
    def name(self) -> StepName: ...

    @property
    def facts_type(self) -> type[F]: ...

    def plan(self, host: Host) -> Plan[F]:
        """Changes nothing; raises `InstallationError` where it could not be done."""
        ...

    def do(self, host: Host, facts: F) -> None: ...

    def undo(self, host: Host, facts: F) -> None: ...


def carry_out(steps: Sequence[Step[Any]], host: Host, journal: Journal, *, again: bool = False) -> None:
    """Those that are not done, or all of them `again`; raises what a step raises, and leaves it begun."""
    for step in steps:
        is_done = journal.is_done(step.name)
        if is_done and not again:
            continue
        facts = None if is_done else journal.facts(step.name, step.facts_type)
        if facts is None:
            facts = step.plan(host).facts
            journal.begin(step.name, facts)
        step.do(host, facts)
        journal.done(step.name, facts)


def take_back(steps: Sequence[Step[Any]], host: Host, journal: Journal) -> None:
    """Those that were begun, the last one first."""
    for step in reversed(steps):
        facts = journal.facts(step.name, step.facts_type)
        if facts is not None:
            step.undo(host, facts)
            journal.forget(step.name)


def foreseen(steps: Sequence[Step[Any]], host: Host, journal: Journal) -> list[Change]:
    """What `carry_out` would change, for `--dry-run`."""
    return [change for step in steps if not journal.is_done(step.name) for change in step.plan(host).changes]
