"""A version on trial, and its rollback: prepared before it is in force, and removed when it has passed.

The link to the tree and the units alone determine which version runs on a host.

The script puts the version before in force if the new one does not start. It needs nothing of either version: a shell,
and a few programs that every system has. systemd runs it whenever a daemon has ended (`ExecStopPost=` of the units);
`now` in place of a unit acts at once. It only renames prepared files, so a full disk does not prevent it; and being
killed in the middle does no harm, since the next failure, or the next upgrade, runs it again. At the end it removes
itself.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from partage_base.files import write_whole
from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.installation.errors import StepFailed
from partage_cli.installation.host import Host
from partage_cli.installation.places import CURRENT, STATE, TREES, UNITS
from partage_cli.installation.programs import SHOWN, run
from partage_cli.installation.tree import other_units, put_on_disk

VERSION_BACK: Final = f"{STATE}/version-back"
"""The script; exists while a version is on trial. The units refer to it."""
WENT_BACK: Final = f"{STATE}/went-back"
"""A one-line message of the script."""
_LINK_BACK: Final = f"{TREES}/.before"
"""The link to the version before, ready to be renamed."""
_FAILURES: Final = "run/partage/trial"
"""Failure times of daemons on trial, a file for each."""
_NOW: Final = "now"
_SCRIPT_WITHIN_S: Final = 30.0
_ALLOWED: Final = 2
"""Failures of one daemon within `_WITHIN_S`; the next one ends the trial."""
_WITHIN_S: Final = 300
"""Long enough for three starts that hang and time out."""
_BAD_CONFIGURATION: Final = 78
"""systemd does not restart a daemon with this exit code."""


class Course(msgspec.Struct, frozen=True):
    """The journal's facts of an upgrade in progress."""

    before: str
    target: str
    daemons: tuple[str, ...]
    """The units that ran."""
    tolerated: frozenset[str] = frozenset()
    """Why crishim honoured no allocation before."""
    with_kubelet: bool = False
    """Kubelet spoke through crishim."""


def is_armed(host: Host) -> bool:
    return host.path(VERSION_BACK).exists()


def went_back(host: Host) -> str | None:
    """The script's message, if it has acted."""
    said = text_of(host.path(WENT_BACK))
    return None if isinstance(said, Unseen) else said.strip() or "the version before is in force again"


def has_failures(host: Host) -> bool:
    """Whether a daemon has failed since the trial was armed."""
    return any(host.path(_FAILURES).glob("*"))


def arm(host: Host, course: Course, units: Mapping[str, str]) -> None:
    """Prepares everything that the rollback needs, the script last; `units` are those of the target."""
    disarm(host)
    for name in other_units(host.root, units):
        text = text_of(host.path(UNITS) / name)
        if not isinstance(text, Unseen):  # a new one stays where it is: nothing starts it
            write_whole(host.path(UNITS) / _kept_unit(name), text.encode(), mode=0o644, synced=True)
    beside = host.path(f"{_LINK_BACK}.new")
    beside.unlink(missing_ok=True)
    beside.symlink_to(course.before)
    beside.rename(host.path(_LINK_BACK))
    text = script(course, tuple(units), systemctl=host.services.command, root=str(host.root).rstrip("/"))
    write_whole(host.path(VERSION_BACK), text.encode(), mode=0o700, synced=True)
    put_on_disk(host.path(VERSION_BACK).parent)


def go_back(host: Host, course: Course) -> None:
    """Raises `StepFailed` if the version before can't be linked."""
    if is_armed(host):
        done = run("/bin/sh", str(host.path(VERSION_BACK)), _NOW, within_s=_SCRIPT_WITHIN_S)
        if is_armed(host):
            raise StepFailed(
                f"{host.path(VERSION_BACK)} has not put {course.before} back: {done.stderr.strip()[-SHOWN:]}; "
                f"link {host.path(CURRENT)} to {course.before} and start the daemons again"
            )
    host.services.daemon_reload()


def disarm(host: Host) -> None:
    """Removes the script first: without it nothing uses the rest."""
    for each in (VERSION_BACK, _LINK_BACK, WENT_BACK):
        host.path(each).unlink(missing_ok=True)
    for left in host.path(UNITS).glob(_kept_unit("*")):
        left.unlink(missing_ok=True)
    shutil.rmtree(host.path(_FAILURES), ignore_errors=True)


def _kept_unit(unit: str) -> str:
    """The name of the former unit, beside its place; systemd does not read such names."""
    return f".{unit}.before"


def script(course: Course, units: Sequence[str], *, systemctl: Sequence[str] = ("systemctl",), root: str = "") -> str:
    """`units`: all of ours that a version may have; `root` prefixes every path, without a trailing slash."""
    current, link, failures, went_back, itself, folder = (
        shlex.quote(f"{root}/{each}") for each in (CURRENT, _LINK_BACK, _FAILURES, WENT_BACK, VERSION_BACK, UNITS)
    )
    tried, before, control = shlex.quote(course.target), shlex.quote(course.before), shlex.join(systemctl)
    return f"""\
#!/bin/sh
# Puts the version before in force where the new one does not start. `partage node upgrade` made it, and takes it away
# when the new version has proved itself. systemd runs it when a daemon has ended. By hand: sh {itself} {_NOW}
who=$1

if [ "$who" != {_NOW} ]; then
    [ "${{SERVICE_RESULT:-success}}" != success ] || exit 0
    read -r up idle </proc/uptime
    up=${{up%%.*}}
    mkdir -p {failures}
    if echo "$up" >>{failures}/"$who"; then
        failed=0
        while read -r at; do
            [ $((up - at)) -gt {_WITHIN_S} ] || failed=$((failed + 1))
        done <{failures}/"$who"
        [ "$failed" -gt {_ALLOWED} ] || [ "${{EXIT_STATUS:-}}" = {_BAD_CONFIGURATION} ] || exit 0
    fi
fi

for unit in {shlex.join(units)}; do
    [ ! -e {folder}/".$unit.before" ] || mv -f {folder}/".$unit.before" {folder}/"$unit"
done
[ ! -L {link} ] || mv -fT {link} {current}
[ "$(readlink {current})" = {before} ] || exit 1
case "$who" in {_NOW}) why="was taken back" ;; *) why="does not start: $who failed" ;; esac
echo {tried}" $why; "{before}" is in force again" >{went_back}
rm -f {itself}

[ "$who" != {_NOW} ] || exit 0
{control} --no-block daemon-reload
for daemon in {shlex.join(course.daemons)}; do
    [ "$daemon" = "$who.service" ] || {control} --no-block try-restart "$daemon"
done
{control} --no-block start "$who.service"
"""
