"""Another version in force, in an order in which a death at any point leaves a node that works.

Checks come first: the new daemons read the node's configuration, and each version reads what the other leaves. Then the
way back is put in place, the link is set, and the daemons start again, the broker before crishim; systemd keeps
crishim's socket meanwhile, so kubelet waits and containers notice nothing. A version that does not prove itself is gone
again before this ends. Where this dies on the way, systemd runs the way back at the third failure of a daemon, and the
next run goes back first.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from partage_cli.installation import traces
from partage_cli.installation.errors import InstallationError, NotProved, StepFailed, UnfitVersion
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Journal
from partage_cli.installation.places import CURRENT, TREES
from partage_cli.installation.steps import Change
from partage_cli.installation.tree import check, kept_units, other_units, place, pointed
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
from partage_cli.installation.versions.trial import Trial

_PROVED_WITHIN_S: Final = 60.0
"""After each start; signs of life come every 5 s."""


class Course(msgspec.Struct, frozen=True):
    """What the journal knows of a change of versions that is under way."""

    before: str
    target: str
    daemons: tuple[str, ...]
    tolerated: frozenset[str]
    """Why crishim honoured no allocation, before."""
    with_kubelet: bool
    """It spoke through crishim."""
    is_proved: bool = False


@dataclass(frozen=True)
class Upgrade:
    host: Host
    journal: Journal
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def foreseen(self, tree: Path) -> list[Change]:
        """What would change; raises where it could not be done."""
        target, before = check(tree), self._before()
        if target == before:
            return []
        home = self.host.path(TREES) / target
        changes = [Change("copy", f"{tree} to {home}")]
        if home.exists():
            self._require_fit(before, home)
            changes = []
        changes += [Change("write", each) for each in other_units(self.host, kept_units(self.host, tree))]
        changes.append(Change("point", f"{self.host.path(CURRENT)} to {target}; it points to {before}"))
        return [*changes, *(Change("restart", f"{each.unit}; no container is") for each in running(self.host))]

    def carry_out(self, tree: Path) -> None:
        """Returns when the tree is in force and has proved itself; raises `NotProved` where the one before is back."""
        self._finish_former()
        before = self._before()
        home = place(self.host.root, tree)
        if home.name == before:
            self.host.say(f"{before} is in force")
            return
        self._require_fit(before, home)
        daemons = running(self.host)
        course = Course(
            before=before,
            target=home.name,
            daemons=tuple(each.unit for each in daemons),
            tolerated=refusing(self.host),
            with_kubelet=CRISHIM in daemons and kubelet_speaks(self.host),
        )
        if BROKER in daemons:
            self._install_library(home)
        self.journal.begin("upgrade", course)
        trial, units = self._trial(course), kept_units(self.host, home)
        trial.arm(units)
        try:
            self._try(course, trial, units)
        except InstallationError as error:
            self._back(course, trial)
            raise NotProved(f"{course.target}: {error}; {before} is in force again") from error
        self.journal.begin("upgrade", msgspec.structs.replace(course, is_proved=True))
        self._end(course, trial)

    def _finish_former(self) -> None:
        """What one that died has left goes back, unless it had proved itself."""
        course = self.journal.facts("upgrade", Course)
        if course is None:
            return
        trial = self._trial(course)
        if course.is_proved:
            self._end(course, trial)
            return
        why = trial.went_back
        if trial.is_armed or why is not None:
            self.host.say(f"an upgrade to {course.target} was cut off; {course.before} comes back first")
            self._back(course, trial)
        else:
            self._forget(trial)
        if why is not None:
            raise NotProved(f"{why}; say it again to try once more")

    def _try(self, course: Course, trial: Trial, units: dict[str, str]) -> None:
        daemons = by_unit(course.daemons)
        trial.put_in_force(units)
        self.host.say(f"{course.target} is on trial")
        for number, daemon in enumerate(daemons, 1):
            since_s = time.time()
            self.host.services.restart(daemon.unit)
            self._proof(course, daemons[:number]).wait(since_s, _PROVED_WITHIN_S, give_up=lambda: _failed(trial))
            self.host.say(f"{daemon.program} works")
        self._proof(course, daemons).wait(time.time(), _PROVED_WITHIN_S, give_up=lambda: _failed(trial))

    def _back(self, course: Course, trial: Trial) -> None:
        """The version before, at work again; raises `StepFailed` where even that fails, and the next run goes on."""
        trial.go_back()
        daemons = by_unit(course.daemons)
        since_s = time.time()
        for daemon in daemons:
            self.host.services.restart(daemon.unit)
        self._proof(course, daemons).wait(since_s, _PROVED_WITHIN_S)
        self._forget(trial)

    def _end(self, course: Course, trial: Trial) -> None:
        trial.disarm()
        self.journal.take_version(course.target)
        self._tidy(course.before, course.target)
        self.journal.forget("upgrade")

    def _tidy(self, *versions: str) -> None:
        """Leaves the version before, for a way back by hand, and libraries that containers have."""
        traces.remove([tree for tree in traces.trees(self.host) if tree.name not in versions])
        libraries = {*traces.used_libraries(self.host), traces.current_library(self.host)}
        traces.remove([each for each in traces.libraries(self.host) if each.name not in libraries])

    def _forget(self, trial: Trial) -> None:
        trial.disarm()
        self.journal.forget("upgrade")

    def _install_library(self, home: Path) -> None:
        """Beside those that are there, which containers keep; the broker's unit does so too, but goes on without."""
        _, variables = started_with(self.host, BROKER)
        asked(self.host, home, BROKER.program, "--install-library", variables=variables)

    def _require_fit(self, before: str, home: Path) -> None:
        """The new version understands the node and what is on it; raises `UnfitVersion`."""
        contracts.require_neighbours(self._contracts(self.host.path(TREES) / before), self._contracts(home))
        for daemon in running(self.host):
            flags, variables = started_with(self.host, daemon)
            try:
                asked(self.host, home, daemon.program, *flags, "--check", variables=variables)
            except StepFailed as error:
                raise UnfitVersion(f"{error}; nothing was changed") from None

    def _contracts(self, tree: Path) -> contracts.Contracts:
        try:
            return contracts.decode(asked(self.host, tree, "partage", "node", "contracts").encode())
        except (StepFailed, msgspec.MsgspecError) as error:
            raise UnfitVersion(f"it is not known what {tree.name} reads and writes: {error}") from None

    def _before(self) -> str:
        if before := pointed(self.host):
            return before
        raise UnfitVersion(f"{self.host.path(CURRENT)} points to no version; `partage node install` comes first")

    def _trial(self, course: Course) -> Trial:
        return Trial(self.host, course.before, course.target, course.daemons)

    def _proof(self, course: Course, daemons: Sequence[Daemon]) -> Proof:
        with_kubelet = course.with_kubelet and CRISHIM in daemons
        return Proof(self.host, daemons, course.tolerated, with_kubelet, clock=self.clock, sleep=self.sleep)


def _failed(trial: Trial) -> str | None:
    if trial.went_back:
        return trial.went_back
    return "a daemon has failed since it was started" if trial.has_failures else None
