"""Upgrades to another version, in an order in which a crash at any point leaves a working node.

Checks come first: the new daemons read the node's configuration, and each version reads what the other writes. Then, as
one step of the journal, the rollback is prepared, the link is set, and the daemons restart, the broker before crishim;
systemd keeps crishim's socket meanwhile, so kubelet waits and containers are not affected. A version that fails its
trial is rolled back before this returns. If this process dies midway, systemd runs the rollback at the third failure of
a daemon, and the next run rolls back first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from partage_cli.installation.errors import InstallationError, NotProved, StepFailed, UnfitNode
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Change, Journal, Plan, StepName, carry_out, take_back
from partage_cli.installation.libraries import current_library, keep_libraries, used_libraries
from partage_cli.installation.places import CURRENT, TREES
from partage_cli.installation.preparation import put_units
from partage_cli.installation.tree import check, keep_trees, kept_units, other_units, place, point, pointed
from partage_cli.installation.versions import contracts, trial
from partage_cli.installation.versions.daemons import (
    BROKER,
    CRISHIM,
    Daemon,
    Proof,
    asked,
    by_unit,
    kubelet_speaks,
    refusing,
    running,
    started_with,
)
from partage_cli.installation.versions.trial import Course

_PROVED_WITHIN_S: Final = 60.0
"""After each start; signs of life come every 5 s."""


@dataclass(frozen=True)
class NewVersion:
    """The step that puts a tree's version on trial; undoing it puts the one before in force again."""

    tree: Path
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    name: StepName = "upgrade"
    facts_type = Course

    def plan(self, host: Host) -> Plan[Course]:
        """Has no changes if the version is in force; raises `UnfitNode` if it can't be."""
        target, before = check(self.tree), _before(host)
        daemons, home = running(host), host.path(TREES) / target
        course = Course(
            before=before,
            target=target,
            daemons=tuple(each.unit for each in daemons),
            tolerated=refusing(host),
            with_kubelet=CRISHIM in daemons and kubelet_speaks(host),
        )
        if target == before:
            return Plan((), course)
        changes = [] if home.exists() else [Change("copy", f"{self.tree} to {home}")]
        if home.exists():  # a tree runs only at that path
            _require_fit(host, before, home)
        changes += [Change("write", each) for each in other_units(host.root, kept_units(host.root, self.tree))]
        changes.append(Change("point", f"{host.path(CURRENT)} to {target}; it points to {before}"))
        changes += [Change("restart", f"{each.unit}; no container is") for each in daemons]
        return Plan(tuple(changes), course)

    def do(self, host: Host, facts: Course) -> None:
        units, daemons = kept_units(host.root, host.path(TREES) / facts.target), by_unit(facts.daemons)
        trial.arm(host, facts, units)
        point(host.root, facts.target)
        put_units(host, units)
        host.say(f"{facts.target} is on trial")
        for number, daemon in enumerate(daemons, 1):
            since_s = time.time()
            host.services.restart(daemon.unit)
            self._proof(host, facts, daemons[:number]).wait(since_s, _PROVED_WITHIN_S, give_up=lambda: _failed(host))
            host.say(f"{daemon.program} works")
        self._proof(host, facts, daemons).wait(time.time(), _PROVED_WITHIN_S, give_up=lambda: _failed(host))

    def undo(self, host: Host, facts: Course) -> None:
        """Raises `StepFailed` if even the version before does not work; the next run continues."""
        if trial.is_armed(host) or trial.went_back(host) is not None:
            trial.go_back(host, facts)
            daemons, since_s = by_unit(facts.daemons), time.time()
            for daemon in daemons:
                host.services.restart(daemon.unit)
            self._proof(host, facts, daemons).wait(since_s, _PROVED_WITHIN_S)
        trial.disarm(host)

    def _proof(self, host: Host, course: Course, daemons: Sequence[Daemon]) -> Proof:
        with_kubelet = course.with_kubelet and CRISHIM in daemons
        return Proof(host, daemons, course.tolerated, with_kubelet, clock=self.clock, sleep=self.sleep)


def upgrade(host: Host, journal: Journal, step: NewVersion) -> None:
    """Returns when the tree is in force and passed its trial; raises `NotProved` after a rollback."""
    _finish_former(host, journal, step)
    _before(host)  # if there is none, nothing is copied
    home = place(host.root, step.tree)
    plan = step.plan(host)
    course = plan.facts
    if not plan.changes:
        host.say(f"{course.before} is in force")
        return
    if BROKER.unit in course.daemons:
        _install_library(host, home)
    journal.begin("upgrade", course)
    try:
        carry_out([step], host, journal)
    except InstallationError as error:
        take_back([step], host, journal)
        raise NotProved(f"{course.target}: {error}; {course.before} is in force again") from error
    _end(host, journal, course)


def _finish_former(host: Host, journal: Journal, step: NewVersion) -> None:
    """Rolls back what a run that died has left, unless its version had passed."""
    course = journal.facts("upgrade", Course)
    if course is None:
        return
    if journal.is_done("upgrade"):
        _end(host, journal, course)
        return
    why = trial.went_back(host)
    if trial.is_armed(host) or why is not None:
        host.say(f"an upgrade to {course.target} was cut off; {course.before} comes back first")
    take_back([step], host, journal)
    if why is not None:
        raise NotProved(f"{why}; say it again to try once more")


def _end(host: Host, journal: Journal, course: Course) -> None:
    """Keeps the version before, for a manual rollback, and libraries that containers use."""
    trial.disarm(host)
    journal.take_version(course.target)
    keep_trees(host.root, (course.before, course.target))
    keep_libraries(host.root, {*used_libraries(host.root), current_library(host.root)})
    journal.forget("upgrade")


def _before(host: Host) -> str:
    if before := pointed(host.root):
        return before
    raise UnfitNode(f"{host.path(CURRENT)} points to no version; `partage node install` comes first")


def _install_library(host: Host, home: Path) -> None:
    """Installs it beside those that containers use; the broker's unit does so too, but goes on without."""
    _, variables = started_with(host, BROKER)
    asked(host, home, BROKER.program, "--install-library", variables=variables)


def _require_fit(host: Host, before: str, home: Path) -> None:
    """Checks that the new version understands the node and its data; raises `UnfitNode`."""
    contracts.require_neighbours(_contracts(host, host.path(TREES) / before), _contracts(host, home))
    for daemon in running(host):
        flags, variables = started_with(host, daemon)
        try:
            asked(host, home, daemon.program, *flags, "--check", variables=variables)
        except StepFailed as error:
            raise UnfitNode(f"{error}; nothing was changed") from None


def _contracts(host: Host, tree: Path) -> contracts.Contracts:
    try:
        return contracts.decode(asked(host, tree, "partage", "node", "contracts").encode())
    except (StepFailed, msgspec.MsgspecError) as error:
        raise UnfitNode(f"it is not known what {tree.name} reads and writes: {error}") from None


def _failed(host: Host) -> str | None:
    why = trial.went_back(host)
    return why or ("a daemon has failed since it was started" if trial.has_failures(host) else None)
