"""What the broker was told of each container, as a file of its own: what it rebuilds its books from.

A file is put in place whole or not at all, so that a broker that is killed leaves the old one or the new. Limits come
from here alone.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from partage_base.files import write_whole
from partage_isolation.errors import NoFolder
from partage_isolation.ledger.container import CardBook
from partage_plugins.vocabulary.names import CardId, CardIdText, ContainerKey, ContainerKeyText, ContainerName
from partage_plugins.vocabulary.pods import PodRef

FOLDER: Final = "run/partage/state/containers"
_SUFFIX: Final = ".json"


class CardSpec(Struct, frozen=True, kw_only=True):
    """One card of a container; bytes and milli."""

    id: CardIdText
    memory: int
    share: int
    limit: int
    lowered: int | None = None
    """Memory, by root on the node."""
    most: int = 0
    """Memory: the highest grant so far."""
    lowered_share: int | None = None
    lowered_limit: int | None = None

    @property
    def limit_in_force(self) -> int:
        return self.limit if self.lowered_limit is None else min(self.limit, self.lowered_limit)

    @property
    def share_in_force(self) -> int:
        """What of its time is guaranteed, never above the ceiling."""
        share = self.share if self.lowered_share is None else min(self.share, self.lowered_share)
        return min(share, self.limit_in_force)

    def book(self) -> CardBook:
        most = max(self.most, self.memory)
        return CardBook(self.id, self.memory, self.share_in_force, self.limit_in_force, self.lowered, most)


class Spec(Struct, frozen=True, kw_only=True):
    """One container. The place of a card in `cards` is its number, which never changes."""

    v: int = 1
    key: ContainerKeyText
    pod: PodRef
    container: ContainerName
    gen: int
    cards: tuple[CardSpec, ...]
    library: str
    """The folder whose library it has."""

    def card(self, card: CardId) -> CardSpec | None:
        return next((each for each in self.cards if each.id == card), None)


class Specs:
    def __init__(self, root: Path) -> None:
        self._folder = root / FOLDER

    def load(self) -> tuple[tuple[Spec, ...], tuple[str, ...]]:
        """All that can be read; and a sentence on each that can't, which is set aside."""
        found, faults = list[Spec](), list[str]()
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            try:
                found.append(_read(path))
            except (OSError, msgspec.MsgspecError, ValueError) as error:
                faults.append(f"{path} can't be read ({error}); its container gets no memory until it is created again")
                with contextlib.suppress(OSError):
                    path.rename(path.with_suffix(".damaged"))
        return tuple(found), tuple(faults)

    def write(self, spec: Spec) -> None:
        """Puts it in place; raises `NoFolder`."""
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_whole(self._path(spec.key), msgspec.json.encode(spec))
        except OSError as error:
            raise NoFolder(
                f"cannot write down container {spec.key} in {self._folder}: {error.strerror}; make room there"
            ) from error

    def remove(self, key: ContainerKey) -> None:
        with contextlib.suppress(OSError):
            self._path(key).unlink(missing_ok=True)

    def _path(self, key: ContainerKey) -> Path:
        return self._folder / f"{key}{_SUFFIX}"


def _read(path: Path) -> Spec:
    spec = msgspec.json.decode(path.read_bytes(), type=Spec)
    if spec.key != path.stem:
        raise ValueError(f"it is of container {spec.key}")
    return spec
