"""Layers of images: archives that have the same bits for the same content, whichever machine packs them."""

from __future__ import annotations

import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from partage_bundle import cache, interpreter
from partage_bundle.interpreter import Interpreter
from partage_bundle.recipe import PREFIX

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BLOCK: Final = 1 << 20


@dataclass(frozen=True)
class Layer:
    file: Path
    digest: str
    """Digest of the uncompressed archive, as a configuration refers to it."""


def of_tree(tree: Path, version: str) -> Layer:
    """The tree at its installed path, and nothing else: extracting it over `/` installs it."""
    key = sha256((tree / "MANIFEST").read_bytes()).hexdigest()
    return made(key, lambda tar: _add_tree(tar, tree, version))


def of_surroundings(version: str) -> Layer:
    """The files that a container needs beside the tree."""
    return made(f"around-{version}", lambda tar: _add_surroundings(tar, version))


def header(path: str, mode: int, kind: bytes = tarfile.REGTYPE, size: int = 0) -> tarfile.TarInfo:
    """Owner root, no time."""
    made = tarfile.TarInfo(path)
    made.mode, made.type, made.size = mode, kind, size
    return made


def made(key: str, fill: Callable[[tarfile.TarFile], None]) -> Layer:
    """Packed once for each key, which must identify the content."""
    packs = interpreter.here()
    of = cache.digest(key, *packs.words, cache.digest_of_builder())
    folder = cache.made("layers", of, lambda place: _pack(place, fill, packs))
    return Layer(folder / "layer.tar.gz", (folder / "digest").read_text(encoding="ascii"))


def _pack(place: Path, fill: Callable[[tarfile.TarFile], None], packs: Interpreter) -> None:
    with packs.packed(place / "layer.tar.gz") as pipe:
        counted = _Counted(pipe)
        with tarfile.open(fileobj=counted, mode="w|", format=tarfile.GNU_FORMAT, bufsize=_BLOCK) as tar:
            fill(tar)
    (place / "digest").write_text(counted.digest, encoding="ascii")


class _Counted(BufferedIOBase):
    """Forwards what is written, and computes its digest."""

    def __init__(self, target: IO[bytes]) -> None:
        self._target = target
        self._sha256 = sha256()

    @property
    def digest(self) -> str:
        return "sha256:" + self._sha256.hexdigest()

    def write(self, data: ReadableBuffer, /) -> int:
        content = bytes(data)
        self._sha256.update(content)
        return self._target.write(content)


def _add_tree(tar: tarfile.TarFile, tree: Path, version: str) -> None:
    top = f"{PREFIX}/{version}"[1:]
    for folder in ("opt", PREFIX[1:], top):
        tar.addfile(header(folder, 0o755, tarfile.DIRTYPE))
    for path in sorted(tree.rglob("*")):
        name = f"{top}/{path.relative_to(tree)}"
        if path.is_dir():
            tar.addfile(header(name, 0o755, tarfile.DIRTYPE))
        else:
            with path.open("rb") as file:
                tar.addfile(header(name, path.stat().st_mode & 0o777, size=path.stat().st_size), file)


def _add_surroundings(tar: tarfile.TarFile, version: str) -> None:
    for folder, mode in (("etc", 0o755), ("opt", 0o755), (PREFIX[1:], 0o755), ("run", 0o755), ("tmp", 0o1777)):
        tar.addfile(header(folder, mode, tarfile.DIRTYPE))
    link = header(f"{PREFIX[1:]}/current", 0o777, tarfile.SYMTYPE)
    link.linkname = version
    tar.addfile(link)
    passwd = b"root:x:0:0:root:/:/nowhere\npartage:x:65532:65532:partage:/:/nowhere\n"
    tar.addfile(header("etc/passwd", 0o644, size=len(passwd)), BytesIO(passwd))
