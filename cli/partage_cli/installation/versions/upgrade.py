"""Upgrades to another version, in an order in which a crash at any point leaves a working node.

Checks come first: the new daemons read the node's configuration, and each version reads what the other writes. Then, as
one step of the journal, the rollback is prepared, the link is set, and the daemons restart, the broker before crishim;
systemd keeps crishim's socket meanwhile, so kubelet waits and containers are not affected. A version that fails its
trial is rolled back before this returns. If this process dies midway, systemd runs the rollback at the third failure of
a daemon, and the next run rolls back first.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.installation.errors import InstallationError, NotProved, StepFailed, UnfitNode
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Change, Journal, Plan, StepName, carry_out, take_back
from partage_cli.installation.libraries import current_library, keep_libraries, used_libraries
from partage_cli.installation.places import CURRENT, TREES, UNITS, VERSION_BACK, WENT_BACK
from partage_cli.installation.preparation import put_units
from partage_cli.installation.programs import SHOWN, run
from partage_cli.installation.tree import check, keep_trees, kept_units, other_units, place, point, pointed, put_on_disk
from partage_cli.installation.versions import contracts
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
from partage_cli.installation.versions.version_back import FAILURES, LINK_BACK, NOW, Course, kept_unit, script

_PROVED_WITHIN_S: Final = 60.0
"""After each start; signs of life come every 5 s."""
_SCRIPT_WITHIN_S: Final = 30.0


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
        _arm(host, facts, units)
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
        if _is_armed(host) or _went_back(host) is not None:
            _go_back(host, facts)
            daemons, since_s = by_unit(facts.daemons), time.time()
            for daemon in daemons:
                host.services.restart(daemon.unit)
            self._proof(host, facts, daemons).wait(since_s, _PROVED_WITHIN_S)
        end_trial(host)

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
    why = _went_back(host)
    if _is_armed(host) or why is not None:
        host.say(f"an upgrade to {course.target} was cut off; {course.before} comes back first")
    take_back([step], host, journal)
    if why is not None:
        raise NotProved(f"{why}; say it again to try once more")


def _end(host: Host, journal: Journal, course: Course) -> None:
    """Keeps the version before, for a manual rollback, and libraries that containers use."""
    end_trial(host)
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


def _arm(host: Host, course: Course, units: Mapping[str, str]) -> None:
    """Prepares everything that the rollback needs, the script last; `units` are those of the target."""
    end_trial(host)
    for name in other_units(host.root, units):
        text = text_of(host.path(UNITS) / name)
        if not isinstance(text, Unseen):  # a new one stays where it is: nothing starts it
            write_whole(host.path(UNITS) / kept_unit(name), text.encode(), mode=0o644, synced=True)
    point(host.root, course.before, LINK_BACK)
    text = script(course, tuple(units), systemctl=host.services.command, root=str(host.root))
    write_whole(host.path(VERSION_BACK), text.encode(), mode=0o700, synced=True)
    put_on_disk(host.path(VERSION_BACK).parent)


def _go_back(host: Host, course: Course) -> None:
    """Raises `StepFailed` if the version before can't be linked."""
    if _is_armed(host):
        done = run("/bin/sh", str(host.path(VERSION_BACK)), NOW, within_s=_SCRIPT_WITHIN_S)
        if _is_armed(host):
            raise StepFailed(
                f"{host.path(VERSION_BACK)} has not put {course.before} back: {done.stderr.strip()[-SHOWN:]}; "
                f"link {host.path(CURRENT)} to {course.before} and start the daemons again"
            )
    host.services.daemon_reload()


def end_trial(host: Host) -> None:
    """Removes the script first: without it nothing uses the rest."""
    for each in (VERSION_BACK, LINK_BACK, WENT_BACK):
        host.path(each).unlink(missing_ok=True)
    for left in host.path(UNITS).glob(kept_unit("*")):
        left.unlink(missing_ok=True)
    shutil.rmtree(host.path(FAILURES), ignore_errors=True)


def _is_armed(host: Host) -> bool:
    return host.path(VERSION_BACK).exists()


def _went_back(host: Host) -> str | None:
    """The script's message, if it has acted."""
    said = text_of(host.path(WENT_BACK))
    return None if isinstance(said, Unseen) else said.strip() or "the version before is in force again"


def _failed(host: Host) -> str | None:
    """Why the trial has failed already."""
    if any(host.path(FAILURES).glob("*")):
        return _went_back(host) or "a daemon has failed since it was started"
    return _went_back(host)
