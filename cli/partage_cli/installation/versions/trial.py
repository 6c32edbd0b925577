"""A version on trial: its way back is put in place before it is in force, and taken away when it has proved itself.

The link to the tree and the units are the only things on a host that say which version runs.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.files import write_whole
from partage_cli.doctor.local_node import Unseen, text_of
from partage_cli.installation.errors import StepFailed
from partage_cli.installation.host import Host
from partage_cli.installation.places import CURRENT, UNITS
from partage_cli.installation.preparation import put_units
from partage_cli.installation.tree import other_units, point, put_on_disk
from partage_cli.installation.versions.places import FAILURES, LINK_BACK, VERSION_BACK, WENT_BACK, kept_unit
from partage_cli.installation.versions.version_back import NOW, WayBack, script

_UNIT_MODE: Final = 0o644
_SCRIPT_WITHIN_S: Final = 30.0
_SHOWN: Final = 300


@dataclass(frozen=True)
class Trial:
    host: Host
    before: str
    """The version that was in force."""
    target: str
    """The version that shall be."""
    daemons: Sequence[str]
    """The units that ran."""

    @property
    def is_armed(self) -> bool:
        return self._path(VERSION_BACK).exists()

    @property
    def went_back(self) -> str | None:
        """What the script left, where it has acted."""
        said = text_of(self._path(WENT_BACK))
        return None if isinstance(said, Unseen) else said.strip() or "the version before is in force again"

    @property
    def has_failures(self) -> bool:
        """Whether a daemon has failed since the trial was armed."""
        return any(self._path(FAILURES).glob("*"))

    def arm(self, units: Mapping[str, str]) -> None:
        """Everything that the way back needs, the script last; `units` are those that the target brings."""
        self.disarm()
        for name in other_units(self.host, dict(units)):
            self._keep(name)
        beside = self._path(f"{LINK_BACK}.new")
        beside.unlink(missing_ok=True)
        beside.symlink_to(self.before)
        beside.rename(self._path(LINK_BACK))
        way = WayBack(
            before=self.before,
            tried=self.target,
            units=tuple(units),
            daemons=self.daemons,
            systemctl=self.host.services.command,
            root=str(self.host.root).rstrip("/"),
        )
        write_whole(self._path(VERSION_BACK), script(way).encode(), mode=0o700, synced=True)
        put_on_disk(self._path(VERSION_BACK).parent)

    def put_in_force(self, units: Mapping[str, str]) -> None:
        """The link and the units; running daemons are as they were."""
        point(self.host, self.target)
        put_units(self.host, dict(units))

    def go_back(self) -> None:
        """Raises `StepFailed` where the version before cannot be linked."""
        if self.is_armed:
            done = subprocess.run(  # noqa: S603  our own script
                ("/bin/sh", str(self._path(VERSION_BACK)), NOW),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
                timeout=_SCRIPT_WITHIN_S,
            )
            if self.is_armed:
                raise StepFailed(
                    f"{self._path(VERSION_BACK)} has not put {self.before} back: {done.stderr.strip()[-_SHOWN:]}; "
                    f"link {self._path(CURRENT)} to {self.before} and start the daemons again"
                )
        self.host.services.daemon_reload()

    def disarm(self) -> None:
        """The script first: without it nothing acts on the rest."""
        for each in (VERSION_BACK, LINK_BACK, WENT_BACK):
            self._path(each).unlink(missing_ok=True)
        for left in self._path(UNITS).glob(kept_unit("*")):
            left.unlink(missing_ok=True)
        shutil.rmtree(self._path(FAILURES), ignore_errors=True)

    def _keep(self, name: str) -> None:
        """One that is new stays where it is: nothing starts it."""
        text = text_of(self._path(UNITS) / name)
        if not isinstance(text, Unseen):
            kept = self._path(UNITS) / kept_unit(name)
            write_whole(kept, text.encode(), mode=_UNIT_MODE, synced=True)

    def _path(self, inside: str) -> Path:
        return self.host.root / inside
