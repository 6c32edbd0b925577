"""Containers of engines such as Docker for which room is held: written by the agent, read by the audit.

A file for each. They lie below /run: after a boot no container runs, and nothing is held.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

from partage_base.files import UNFINISHED, write_whole
from partage_plugins.codecs.decoder import Reader
from partage_plugins.errors import DecodeError
from partage_plugins.vocabulary.engines import EngineRecord
from partage_plugins.vocabulary.places import ENGINES_FOLDER

_SUFFIX: Final = ".json"
_reader: Final = Reader("record of a container", EngineRecord)


class EngineRecords:
    """Of one machine. Everything here may raise `OSError`, and `DecodeError` for a file that is no record."""

    def __init__(self, root: Path) -> None:
        self._folder = root / ENGINES_FOLDER

    def load(self) -> Iterator[EngineRecord]:
        """What an earlier agent left, in the order of ids; makes the folder where there is none."""
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
