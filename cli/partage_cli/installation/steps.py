"""Carries out steps in order, and undoes them in reverse, also after a crash at any point.

A step first plans: it returns its changes, and the facts that its other half needs. The facts are in the journal before
anything is changed. A run that finds a step begun uses those, since the host is half changed by then. Doing a step
twice, or half and then whole, has the same result as once; so has undoing it.
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
    """One change of a step, for people."""

    verb: str
    what: str

    def __str__(self) -> str:
        return f"{self.verb} {self.what}"


class NoFacts(msgspec.Struct, frozen=True):
    """The facts of a step that needs none to be undone."""


@dataclass(frozen=True)
class Plan(Generic[F]):
    changes: tuple[Change, ...]
    """Empty: everything is as it should be, and the step only verifies that."""
    facts: F
    """For the journal: what `do` and `undo` must know."""


class Step(Protocol[F]):
    @property
    def name(self) -> StepName: ...

    @property
    def facts_type(self) -> type[F]: ...

    def plan(self, host: Host) -> Plan[F]:
        """Changes nothing; raises `InstallationError` if the step is not possible."""
        ...

    def do(self, host: Host, facts: F) -> None: ...

    def undo(self, host: Host, facts: F) -> None: ...


def carry_out(steps: Sequence[Step[Any]], host: Host, journal: Journal, *, again: bool = False) -> None:
    """Runs steps that are not done, or all of them with `again`; on an error the failed step stays begun."""
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
    """Undoes steps that were begun, the last one first."""
    for step in reversed(steps):
        facts = journal.facts(step.name, step.facts_type)
        if facts is not None:
            step.undo(host, facts)
            journal.forget(step.name)


def foreseen(steps: Sequence[Step[Any]], host: Host, journal: Journal) -> list[Change]:
    """The changes that `carry_out` would make, for `--dry-run`."""
    return [change for step in steps if not journal.is_done(step.name) for change in step.plan(host).changes]
