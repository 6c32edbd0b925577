"""Removes partage from a node; with `forced`, the libraries of running containers stay.

The node's cards are paused first, so that no pod comes, and pods that hold cards are evicted. Then kubelet gets its
runtime back, the daemons are stopped, and files are removed. After a crash the next run continues: each part skips what
is already done.

The trees, with our own program, are removed last, by a script that is written to the node before: it does not need
them, and can be run again by hand.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_cli.doctor.local_node import Unseen, names_in
from partage_cli.installation.host import Host
from partage_cli.installation.journal import Change, Journal
from partage_cli.installation.libraries import keep_libraries, libraries, library_folder, used_libraries
from partage_cli.installation.places import STATE, TREES, UNITS
from partage_cli.installation.switch import take_everything_back
from partage_cli.installation.versions.daemons import DAEMONS
from partage_cli.installation.versions.upgrade import end_trial
from partage_dra.spec_file import SpecFiles
from partage_gpu.node.nvidia_specs import FOLDERS, OUR_FILE
from partage_plugins.api.places import INVENTORY_FILE

_RUN: Final = Path(INVENTORY_FILE).parent
_CARDS: Final = f"{FOLDERS[0]}/{OUR_FILE}"
"""The CDI spec of cards; a runtime reads it only when it creates a container."""
_LAST_ACT: Final = f"{STATE}/last-act"
"""The script that removes the rest, and itself."""


class Removal(msgspec.Struct, frozen=True):
    """The journal's facts of a removal in progress."""

    kept: frozenset[str] = frozenset()
    """Library versions that stay, since containers use them."""


def foreseen(host: Host, journal: Journal) -> list[Change]:
    """What would be removed; changes nothing."""
    found = (host.path(TREES), host.path(_RUN), host.path(_CARDS), library_folder(host.root))
    return [
        Change("evict", "the pods that hold cards on this node"),
        *(Change("take back", name) for name in reversed(list(journal.states)) if name != "uninstall"),
        *(Change("remove", str(each)) for each in found if each.exists()),
    ]


def uninstall(host: Host, journal: Journal, *, leave: Callable[[], None], forced: bool) -> Path:
    """Returns the script to execute in place of this program, as the last step.

    `leave` returns when no pod with cards is left; it raises `PodsStay`, or the error that prevents finding out.
    """
    removal = journal.facts("uninstall", Removal)
    if removal is None:
        if not forced:
            leave()
        removal = Removal(used_libraries(host.root) if forced else frozenset())
        journal.begin("uninstall", removal)
    end_trial(host)
    journal.forget("upgrade")
    take_everything_back(host, journal)
    _end_daemons(host)
    _remove_libraries(host.root, removal.kept)
    for left in libraries(host.root):
        host.say(f"{left} stays: running containers have that library; remove it when they have ended")
    shutil.rmtree(host.path(_RUN), ignore_errors=True)
    host.path(_CARDS).unlink(missing_ok=True)
    SpecFiles(host.root).keep_only(())
    return _write_last_act(host)


def _end_daemons(host: Host) -> None:
    """Stops daemons outside the installation that have units of ours, such as the advertiser."""
    for daemon in DAEMONS:
        unit = host.path(UNITS) / daemon.unit
        if unit.exists():
            host.services.stop(daemon.unit)
            host.services.disable(daemon.unit)
            unit.unlink()
    host.services.daemon_reload()


def _remove_libraries(root: Path, kept: Collection[str]) -> None:
    """Also removes the broker's other files beside them."""
    keep_libraries(root, kept)
    folder = library_folder(root)
    names = names_in(folder)
    if isinstance(names, Unseen):
        return
    for name in set(names) - set(kept):
        (folder / name).unlink(missing_ok=True)
    if names_in(folder) == ():
        folder.rmdir()


def _write_last_act(host: Host) -> Path:
    """Writes the script that removes trees and journal; it can be interrupted and run again."""
    script = host.path(_LAST_ACT)
    there, state, parent, itself = (
        shlex.quote(str(each)) for each in (host.path(TREES), script.parent, script.parent.parent, script)
    )
    text = f"""\
#!/bin/sh
# Takes away what `partage node uninstall` leaves to the last: the trees, with that program in them, and its journal.
rm -rf {there} || exit 1
for each in {state}/* {state}/.[!.]*; do [ "$each" = {itself} ] || rm -rf "$each"; done
rm -rf {state} || exit 1
rmdir {parent} 2>/dev/null
exit 0
"""
    write_whole(script, text.encode(), mode=0o700, synced=True)
    return script
