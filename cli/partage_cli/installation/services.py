"""The service manager of a host: systemd, or a program with systemctl's interface.

If systemd is not process 1, the file `etc/partage/services.json` may name such a program:

    {"systemctl": ["/usr/local/bin/my-systemctl", "--some", "words"]}

It must support `start`, `stop`, `restart`, `enable`, `disable`, `is-active`, `reset-failed` and `daemon-reload`, with
the options that are used here, and outlive the caller.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.installation.errors import StepFailed, UnfitNode
from partage_cli.installation.places import SERVICES
from partage_cli.installation.programs import SHOWN, run

_BOOTED: Final = "run/systemd/system"
_WITHIN_S: Final = 90.0


class Systemctl:
    """Runs systemctl; each call blocks until it is done and raises `StepFailed`."""

    def __init__(self, command: tuple[str, ...] = ("systemctl",)) -> None:
        """`command` is also used in scripts."""
        self.command = command

    def start(self, *units: str) -> None:
        self._do("start", *units)

    def stop(self, *units: str) -> None:
        """Resets failed units too: systemd keeps a failed timer's times, and counts from them after its next start."""
        self._do("stop", *units)
        self.ask("reset-failed", *units)

    def restart(self, unit: str) -> None:
        """Also restarts a unit that reached its start limit."""
        self.ask("reset-failed", unit)  # fails for a unit that was never loaded, and then there is nothing to reset
        self._do("restart", unit)

    def enable(self, *units: str) -> None:
        self._do("enable", "--quiet", *units)

    def disable(self, *units: str) -> None:
        self._do("disable", "--quiet", *units)

    def is_active(self, unit: str) -> bool:
        return self.ask("is-active", "--quiet", unit).returncode == 0

    def daemon_reload(self) -> None:
        self._do("daemon-reload")

    def _do(self, *words: str) -> None:
        done = self.ask(*words)
        if done.returncode:
            raise StepFailed(f"`{' '.join((*self.command, *words))}` failed: {done.stderr.strip()[-SHOWN:]}")

    def ask(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs systemctl and returns its result, also on failure."""
        return run(*self.command, *words, within_s=_WITHIN_S)


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    systemctl: Annotated[tuple[str, ...], Meta(min_length=1)]


def services_of(root: Path) -> Systemctl:
    """Raises `UnfitNode` if the service manager is unknown."""
    path = root / SERVICES
    text = text_of(path)
    if not isinstance(text, Unseen):
        try:
            return Systemctl(msgspec.json.decode(text, type=_File).systemctl)
        except msgspec.MsgspecError as error:
            raise UnfitNode(f'{path}: {error}; it must be like {{"systemctl": ["/path/of/a/program"]}}') from None
    if not text.is_missing:
        raise UnfitNode(str(text))
    if not (root / _BOOTED).is_dir():
        raise UnfitNode(
            "systemd does not keep this node's services, and only systemd is known here; "
            f"where another program takes systemctl's words, name it in /{SERVICES}"
        )
    return Systemctl()
