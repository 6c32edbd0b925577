"""The rollback as a script, and the units that start it. Pure.

The script has literal paths and needs sh, mv, rm and systemctl: neither our programs nor disk space. The former files
are prepared beside their places, so that each is restored by one rename; first it removes what a late switch would
rename there. If it is killed, it completes the rest when it is started again. It runs when the time has run out, at
boot before kubelet starts, and when a step of the switch fails.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Final, NamedTuple

from partage_cli.installation.places import TURN, WAY_BACK

SERVICE: Final = "partage-switch-back.service"
TIMER: Final = "partage-switch-back.timer"
_WRITTEN: Final = "# Written by `partage node switch-on`, which removes it once the switch is confirmed.\n"
_AGAIN_S: Final = 10


class PutBack(NamedTuple):
    """A file and its prepared former content."""

    path: str
    ready: str
    """Empty: the file did not exist, and is removed."""
    staged: str
    """The file that the switch renames to `path`, unless this script was first."""


def script(files: Sequence[PutBack], *, canary: str, kubelet: str, systemctl: Sequence[str], root: str) -> str:
    """`canary` is a static pod's file, or empty; `kubelet` is its service."""
    control = shlex.join(systemctl)
    turn = shlex.quote(f"{root.rstrip('/')}/{TURN}")
    late = "".join(f"rm -f {shlex.quote(each.staged)} || failed=1\n" for each in files)
    restored = "".join(_restored(each) for each in files)
    without_canary = f"rm -f {shlex.quote(canary)}\n" if canary else ""
    return f"""\
#!/bin/sh
{_WRITTEN}# Gives kubelet the container runtime that it had before. Does nothing unless the switch is armed.
cd {turn} || exit 0
mv armed turning-back 2>/dev/null
[ -e turning-back ] || exit 0
failed=
{late}{without_canary}{restored}[ -z "$failed" ] || exit 1
{control} reset-failed {kubelet} 2>/dev/null
{control} --no-block restart {kubelet} || exit 1
mv turning-back turned-back
{control} --no-block stop {TIMER} 2>/dev/null
exit 0
"""


def _restored(each: PutBack) -> str:
    path, ready = shlex.quote(each.path), shlex.quote(each.ready)
    if not each.ready:
        return f"rm -f {path} || failed=1\n"
    return f"if [ -e {ready} ]; then mv -f {ready} {path} || failed=1; fi\n"


def units(*, kubelet: str, after_s: float, root: str) -> dict[str, str]:
    """Unit texts by name. The timer counts from its start, and from each boot, independently of the clock."""
    path = f"{root.rstrip('/')}/{WAY_BACK}"
    return {
        SERVICE: f"""\
{_WRITTEN}[Unit]
Description=partage: gives kubelet its container runtime back, unless the switch is confirmed
Before={kubelet}
ConditionPathExists={path}

[Service]
Type=oneshot
ExecStart=/bin/sh {path}

[Install]
WantedBy=multi-user.target
""",
        TIMER: f"""\
{_WRITTEN}[Unit]
Description=partage: time within which the switch must be confirmed

[Timer]
OnActiveSec={after_s:g}s
OnUnitInactiveSec={_AGAIN_S}s
AccuracySec=100ms

[Install]
WantedBy=multi-user.target
""",
    }
