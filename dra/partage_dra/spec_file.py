"""CDI spec files, one for each claim: what the runtime adds to each container that has the claim's device.

Files are written atomically, and the folder is never recreated, since runtimes watch it. A file contains the plugins'
answer for the claim except CDI devices, which kubelet passes to each container beside the claim's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from partage_base.files import UNFINISHED, clear_unfinished, write_whole
from partage_plugins.api.claims import CLAIM_KIND, ClaimUid
from partage_plugins.api.containers import Adjustment
from partage_plugins.api.places import CDI_FOLDER

VERSION: Final = "0.5.0"
"""The first version with host paths of device nodes; containerd 1.7 reads no later one."""
_PREFIX: Final = f"{CLAIM_KIND.replace('/', '-')}_"
_SUFFIX: Final = ".json"
_MODE: Final = 0o644
_FLAGS: Final = ("nosuid", "nodev", "rbind")


def spec_of(claim: ClaimUid, adjustment: Adjustment) -> dict[str, Any]:
    """The content of a claim's file. Pure."""
    edits = {
        "env": [f"{name}={value}" for name, value in adjustment.env.items()],
        "mounts": [
            {
                "hostPath": mount.host_path,
                "containerPath": mount.container_path,
                "options": ["ro" if mount.readonly else "rw", *_FLAGS],
            }
            for mount in adjustment.mounts
        ],
        "deviceNodes": [
            {"path": device.container_path, "hostPath": device.host_path, "permissions": device.permissions}
            for device in adjustment.devices
        ],
    }
    device = {"name": claim, "containerEdits": {name: edit for name, edit in edits.items() if edit}}
    return {"cdiVersion": VERSION, "kind": CLAIM_KIND, "devices": [device]}


class SpecFiles:
    """The files of one node. All methods may raise `OSError`."""

    def __init__(self, root: Path) -> None:
        self._folder = root / CDI_FOLDER

    def write(self, claim: ClaimUid, adjustment: Adjustment) -> None:
        self._folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        write_whole(self._path(claim), msgspec.json.encode(spec_of(claim, adjustment)), mode=_MODE)

    def has(self, claim: ClaimUid) -> bool:
        return self._path(claim).is_file()

    def claims(self) -> frozenset[ClaimUid]:
        """All claims with a file."""
        return frozenset(uid for _, uid in self._files())

    def remove(self, claim: ClaimUid) -> None:
        self._path(claim).unlink(missing_ok=True)

    def keep_only(self, claims: Collection[ClaimUid]) -> None:
        """Delete files that a killed driver left for other claims."""
        clear_unfinished(self._folder)
        for path, uid in self._files():
            if uid not in claims:
                path.unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[Path, ClaimUid]]:
        for path in self._folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            if not path.name.startswith(UNFINISHED):
                yield path, ClaimUid(path.stem.removeprefix(_PREFIX))

    def _path(self, claim: ClaimUid) -> Path:
        return self._folder / f"{_PREFIX}{claim}{_SUFFIX}"
