"""Maintains the spec file of our CDI kind on the node: it is checked before each container that needs it.

Runtimes read spec files again for each container, so the file needs to be right only at that moment: no watcher, no
timer. It follows NVIDIA's spec when a driver update rewrites that one, and is restored when someone clears the folder.
A runtime reads either the old or the new text, even during a write: it opens no file whose name does not end in .json
or .yaml. If the file can't be written, the old one stays and the container is refused.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from partage_base.files import clear_unfinished, write_whole
from partage_gpu.node.driver import DriverFiles
from partage_gpu.node.nvidia_specs import OUR_FILE, STATIC_FOLDER, Found, NvidiaSpec, decoded, unusable
from partage_gpu.node.own_spec import Published, built, republished
from partage_gpu.node.raw import InstalledDriver
from partage_gpu.node.settings import ATTACH
from partage_gpu.node.stability import Facts, are_settled, facts_of
from partage_plugins.api.gpu import Card, GpuPart
from partage_plugins.api.places import CDI_FOLDER
from partage_plugins.errors import Refused

_MODE: Final = 0o644
_Built = tuple[Published, Mapping[str, Refused]]


class OwnKind:
    """Our CDI kind on one node."""

    def __init__(self, root: Path, driver_root: str, *, host: str = "/") -> None:
        self._file = root / CDI_FOLDER / OUR_FILE
        self._nvidias = NvidiaSpec(root / CDI_FOLDER, root / host.lstrip("/") / STATIC_FOLDER)
        self._driver = DriverFiles(root, driver_root, host=host)
        self._last: tuple[Found, Published] | None = None
        self._built: tuple[tuple[Card, ...], InstalledDriver, _Built] | None = None
        self._standing: tuple[Facts, bytes] | None = None

    def ensure(self, cards: tuple[Card, ...], part: GpuPart) -> None:
        """Ensures that a runtime finds these cards under our kind; refused with the reason if that fails."""
        found = self._nvidias.current()
        published = self._from_driver(cards, part) if found is None else self._from_nvidia(cards, found)
        if not self._stands(published.text):
            _write(self._file, published.text)

    def _stands(self, text: bytes) -> bool:
        """Whether our file has this content; it is read only when it may have changed."""
        facts = facts_of(str(self._file), follows=False)
        if self._standing == (facts, text):
            return True
        settled, stands = are_settled((facts,)), _read(self._file) == text
        self._standing = (facts, text) if settled and stands else None
        return stands

    def _from_nvidia(self, cards: tuple[Card, ...], found: Found) -> Published:
        """Parsed again only when it has changed: a spec of eight cards in YAML takes milliseconds."""
        if self._last is None or self._last[0] != found:
            try:
                self._last = found, republished(decoded(found))
            except (ValueError, RecursionError) as why:
                raise unusable(found.path, why) from None
        published = self._last[1]
        for card in cards:
            if card.id not in published.cards:
                raise unusable(found.path, f"card {card.id} is not in it")
        return published

    def _from_driver(self, cards: tuple[Card, ...], part: GpuPart) -> Published:
        driver = self._driver.installed(part, cards)
        if self._built is None or self._built[:2] != (part.cards, driver):
            self._built = part.cards, driver, built(part.cards, driver)
        published, refused = self._built[2]
        for card in cards:
            if card.id in refused:
                raise refused[card.id]
        return published


def _read(file: Path) -> bytes | None:
    """The file's content; None also if it is no regular file, which a new one then replaces."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        return os.read(descriptor, status.st_size + 1) if stat.S_ISREG(status.st_mode) else None
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _write(file: Path, text: bytes) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        clear_unfinished(file.parent)
        write_whole(file, text, mode=_MODE, synced=True)
    except OSError as error:
        raise Refused(
            f"partage: the CDI spec {file} can't be written on this node: {error.strerror}; what stood there stays; "
            f"make room or mend it there, or set {ATTACH} to another way"
        ) from None
