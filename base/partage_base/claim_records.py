"""Claims that the DRA driver prepared on this node, a file each: written by the driver, read by crishim and tools.

The files are below /run: after a boot nothing is prepared, and kubelet prepares the claims of each pod that starts
again. A record exists as long as any container may have the claim's device, which can be longer than kubelet needs it
prepared.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import UNFINISHED, write_whole
from partage_plugins.api.claims import ClaimRecord, ClaimUid
from partage_plugins.api.places import CLAIMS_FOLDER
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError

_SUFFIX: Final = ".json"
_MODE: Final = 0o600


_reader: Final = Reader("record of a claim", ClaimRecord)


class ClaimRecords:
    """The records of one node. Everything here may raise `OSError`, and `DecodeError` for an invalid file."""

    def __init__(self, root: Path) -> None:
        self._folder = root / CLAIMS_FOLDER

    def uids(self) -> tuple[ClaimUid, ...]:
        """The uids of all claims that have a record, sorted."""
        try:
            names = [path.name for path in self._folder.iterdir()]  # a glob reports an unreadable folder as empty
        except FileNotFoundError:
            return ()
        mine = (name for name in names if name.endswith(_SUFFIX) and not name.startswith(UNFINISHED))
        return tuple(sorted(ClaimUid(name.removesuffix(_SUFFIX)) for name in mine))

    def of(self, uid: ClaimUid) -> ClaimRecord | None:
        try:
            record = _reader.read(self._path(uid).read_bytes())
        except FileNotFoundError:
            return None
        if record.claim.uid != uid:
            raise DecodeError("record of a claim", path="$.claim.uid", value=record.claim.uid, allowed=f"{uid:.80}")
        return record

    def write(self, record: ClaimRecord) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_whole(self._path(record.claim.uid), msgspec.json.encode(record), mode=_MODE)

    def remove(self, uid: ClaimUid) -> None:
        self._path(uid).unlink(missing_ok=True)

    def _path(self, uid: ClaimUid) -> Path:
        if not uid or "/" in uid or uid.startswith("."):
            raise DecodeError("uid of a claim", path="$", value=uid, allowed="letters, digits, -, _ and .")
        return self._folder / f"{uid}{_SUFFIX}"
