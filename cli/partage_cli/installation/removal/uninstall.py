"""Removes partage from a node; with `forced`, the libraries of running containers stay.

The node's cards are paused first, so that no pod comes, and pods that hold cards are evicted. Then kubelet gets its
runtime back, the daemons are stopped, and files are removed. After a crash the next run continues: each part skips what
is already done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from partage_cli.installation import traces
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Journal
from partage_cli.installation.places import TREES, UNITS
from partage_cli.installation.steps import Change
from partage_cli.installation.versions import trial
from partage_cli.installation.versions.daemons import DAEMONS


class Removal(msgspec.Struct, frozen=True):
    """The journal's facts of a removal in progress."""

    kept: frozenset[str] = frozenset()
    """Library versions that stay, since containers use them."""


@dataclass(frozen=True)
class Uninstall:
    host: Host
    journal: Journal
    leave: Callable[[], None]
    """Returns when no pod with cards is left; raises `PodsStay`, or the error that prevents finding out."""
    switch_off: Callable[[], None]
    """Undoes every step of the installation; raises `InstallationError`."""

    def foreseen(self) -> list[Change]:
        """What would be removed; changes nothing."""
        found = (*map(self.host.path, (TREES, traces.RUN, traces.CARDS)), traces.library_folder(self.host))
        return [
            Change("evict", "the pods that hold cards on this node"),
            *(Change("take back", name) for name in reversed(list(self.journal.states)) if name != "uninstall"),
            *(Change("remove", str(each)) for each in found if each.exists()),
        ]

    def carry_out(self, *, forced: bool) -> Path:
        """Returns the script to execute in place of this program, as the last step."""
        removal = self.journal.facts("uninstall", Removal)
        if removal is None:
            if not forced:
                self.leave()
            removal = Removal(traces.used_libraries(self.host) if forced else frozenset())
            self.journal.begin("uninstall", removal)
        self._end_trial()
        self.switch_off()
        self._end_daemons()
        traces.remove_libraries_but(self.host, removal.kept)
        for left in traces.libraries(self.host):
            self.host.say(f"{left} stays: running containers have that library; remove it when they have ended")
        traces.remove([self.host.path(traces.RUN)])
        traces.remove_specs(self.host)
        return traces.write_last_act(self.host)

    def _end_trial(self) -> None:
        trial.disarm(self.host)
        self.journal.forget("upgrade")

    def _end_daemons(self) -> None:
        """Stops daemons outside the installation that have units of ours, such as the advertiser."""
        for daemon in DAEMONS:
            unit = self.host.path(UNITS) / daemon.unit
            if unit.exists():
                self.host.services.stop(daemon.unit)
                self.host.services.disable(daemon.unit)
                unit.unlink()
        self.host.services.daemon_reload()
