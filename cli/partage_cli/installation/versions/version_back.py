"""The rollback of a version on trial, as a script. Pure.

The script puts the version before in force if the new one does not start. It needs nothing of either version: a shell,
and a few programs that every system has. systemd runs it whenever a daemon has ended (`ExecStopPost=` of the units);
`now` in place of a unit acts at once. It only renames prepared files, so a full disk does not prevent it; and being
killed in the middle does no harm, since the next failure, or the next upgrade, runs it again. At the end it removes
itself.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final

import msgspec

from partage_cli.installation.places import CURRENT, TREES, UNITS, VERSION_BACK, WENT_BACK

LINK_BACK: Final = f"{TREES}/.before"
"""The link to the version before, ready to be renamed."""
FAILURES: Final = "run/partage/trial"
"""Failure times of daemons on trial, a file for each."""
NOW: Final = "now"
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


def kept_unit(unit: str) -> str:
    """The name of the former unit, beside its place; systemd does not read such names."""
    return f".{unit}.before"


def script(course: Course, units: Sequence[str], *, systemctl: Sequence[str], root: str) -> str:
    """`units`: all of ours that a version may have."""
    current, link, failures, went_back, itself, folder = (
        shlex.quote(f"{root.rstrip('/')}/{each}")
        for each in (CURRENT, LINK_BACK, FAILURES, WENT_BACK, VERSION_BACK, UNITS)
    )
    tried, before, control = shlex.quote(course.target), shlex.quote(course.before), shlex.join(systemctl)
    return f"""\
#!/bin/sh
# Puts the version before in force where the new one does not start. `partage node upgrade` made it, and takes it away
# when the new version has proved itself. systemd runs it when a daemon has ended. By hand: sh {itself} {NOW}
who=$1

if [ "$who" != {NOW} ]; then
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
case "$who" in {NOW}) why="was taken back" ;; *) why="does not start: $who failed" ;; esac
echo {tried}" $why; "{before}" is in force again" >{went_back}
rm -f {itself}

[ "$who" != {NOW} ] || exit 0
{control} --no-block daemon-reload
for daemon in {shlex.join(course.daemons)}; do
    [ "$daemon" = "$who.service" ] || {control} --no-block try-restart "$daemon"
done
{control} --no-block start "$who.service"
"""
