"""The script that puts the version before in force again where the new one does not start. Pure.

It is on the node while a new version is on trial, and needs nothing of either version: a shell, and a few programs that
every system has. systemd runs it whenever a daemon has ended (`ExecStopPost=` of the units); `now` in place of a unit
acts at once. It only renames what was made before, so a full disk does not keep it from acting; and a death in the
middle does no harm, since the next failure, or the next upgrade, runs it again. At the end it takes itself away.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from partage_cli.installation.places import CURRENT, UNITS
from partage_cli.installation.versions.places import FAILURES, LINK_BACK, VERSION_BACK, WENT_BACK

NOW: Final = "now"
_ALLOWED: Final = 2
"""Failures of one daemon within the time below; the next one ends the trial."""
_WITHIN_S: Final = 300
"""Three starts that hang are timed out within that."""
_BAD_CONFIGURATION: Final = 78
"""A daemon that ends so is not started again by itself."""


@dataclass(frozen=True)
class WayBack:
    before: str
    """The version that was in force, as the link names it."""
    tried: str
    """The version on trial, for people."""
    units: Sequence[str]
    """All units of ours that a version may bring."""
    daemons: Sequence[str]
    """Those that ran."""
    systemctl: Sequence[str] = ("systemctl",)
    root: str = ""
    """In front of every path; without a slash at the end."""


def script(way: WayBack) -> str:

    def path(inside: str) -> str:
        return shlex.quote(f"{way.root}/{inside}")

    return _SCRIPT.format(
        tried=shlex.quote(way.tried),
        before=shlex.quote(way.before),
        current=path(CURRENT),
        link=path(LINK_BACK),
        failures=path(FAILURES),
        went_back=path(WENT_BACK),
        itself=path(VERSION_BACK),
        folder=path(UNITS),
        units=shlex.join(way.units),
        daemons=shlex.join(way.daemons),
        systemctl=shlex.join(way.systemctl),
        now=NOW,
        within_s=_WITHIN_S,
        allowed=_ALLOWED,
        bad_configuration=_BAD_CONFIGURATION,
    )


_SCRIPT: Final = """\
#!/bin/sh
# Puts the version before in force where the new one does not start. `partage node upgrade` made it, and takes it away
# when the new version has proved itself. systemd runs it when a daemon has ended. By hand: sh {itself} {now}
who=$1

if [ "$who" != {now} ]; then
    [ "${{SERVICE_RESULT:-success}}" != success ] || exit 0
    read -r up idle </proc/uptime
    up=${{up%%.*}}
    mkdir -p {failures}
    if echo "$up" >>{failures}/"$who"; then
        failed=0
        while read -r at; do
            [ $((up - at)) -gt {within_s} ] || failed=$((failed + 1))
        done <{failures}/"$who"
        [ "$failed" -gt {allowed} ] || [ "${{EXIT_STATUS:-}}" = {bad_configuration} ] || exit 0
    fi
fi

for unit in {units}; do
    [ ! -e {folder}/".$unit.before" ] || mv -f {folder}/".$unit.before" {folder}/"$unit"
done
[ ! -L {link} ] || mv -fT {link} {current}
[ "$(readlink {current})" = {before} ] || exit 1
case "$who" in {now}) why="was taken back" ;; *) why="does not start: $who failed" ;; esac
echo {tried}" $why; "{before}" is in force again" >{went_back}
rm -f {itself}

[ "$who" != {now} ] || exit 0
{systemctl} --no-block daemon-reload
for daemon in {daemons}; do
    [ "$daemon" = "$who.service" ] || {systemctl} --no-block try-restart "$daemon"
done
{systemctl} --no-block start "$who.service"
"""
