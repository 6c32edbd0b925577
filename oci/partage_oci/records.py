"""Records of containers that hold grants, one file each, from which the next agent restores its state.

They are below /run: after a reboot no container runs, and nothing is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from partage_base.files import UNFINISHED, write_whole
from partage_plugins.api.engines import EngineId, engine_key
from partage_plugins.api.gpu import GpuGrant
from partage_plugins.api.names import ContainerKey
from partage_plugins.api.places import ENGINES_FOLDER
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError


class EngineRecord(Struct, frozen=True, kw_only=True):
    """What the agent holds for one create of a container; exists as long as the hold."""

    v: int = 1
    id: EngineId
    n: Annotated[int, Meta(ge=1)]
    """Counts the creates of this id."""
    grants: Annotated[tuple[GpuGrant, ...], Meta(min_length=1)]
    pid: int
    """The process that creates the container."""
    start: int
    """Its start time, which distinguishes it from a later process with the same pid."""
    runtime: str
    """The engine's OCI runtime, which keeps its state below `root`."""
    root: str
    folder: str = ""
    """The engine's folder of the container, which it deletes with the container; empty if unknown."""
    is_created: bool = False
    """The creating process has ended and the container existed."""

    @property
    def key(self) -> ContainerKey:
        return engine_key(self.id, self.n)


_SUFFIX: Final = ".json"
_reader: Final = Reader("record of a container", EngineRecord)


class EngineRecords:
    """The records of one machine. All methods may raise `OSError`, and `DecodeError` for an invalid file."""

    def __init__(self, root: Path) -> None:
        self._folder = root / ENGINES_FOLDER

    def load(self) -> Iterator[EngineRecord]:
        """Records of an earlier agent, ordered by id; creates the folder if it does not exist."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for name in sorted(path.name for path in self._folder.iterdir()):
            if name.endswith(_SUFFIX) and not name.startswith(UNFINISHED):
                record = self.of(name.removesuffix(_SUFFIX))
                if record is not None:
                    yield record

    def of(self, id_: str) -> EngineRecord | None:
        try:
            record = _reader.read(self._path(id_).read_bytes())
        except FileNotFoundError:
            return None
        if record.id != id_:
            raise DecodeError("record of a container", path="$.id", value=record.id, allowed=f"{id_:.80}")
        return record

    def write(self, record: EngineRecord) -> None:
        write_whole(self._path(record.id), msgspec.json.encode(record))

    def remove(self, id_: str) -> None:
        self._path(id_).unlink(missing_ok=True)

    def _path(self, id_: str) -> Path:
        return self._folder / f"{id_}{_SUFFIX}"
