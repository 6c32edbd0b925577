"""Which images an archive of `docker save` or an OCI layout has, by the lists in it."""

from __future__ import annotations

import contextlib
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Final

import msgspec
from msgspec import Struct

from partage_cli.machine.runtime.names import whole_name
from partage_plugins.errors import PartageError, Refused

_LISTS: Final = ("manifest.json", "index.json")
_MOST_INDEX: Final = 4 << 20
_MOST_MEMBERS: Final = 100_000
_CONTAINERD_NAME: Final = "io.containerd.image.name"
_OCI_NAME: Final = "org.opencontainers.image.ref.name"


class ImageAway(PartageError):
    """An image can't be had, and why."""


class Contents(Struct, frozen=True):
    names: tuple[str, ...]
    base_name: str = ""
    """What names that are tags alone belong to."""


class _Docker(Struct, frozen=True):
    tags: tuple[str, ...] | None = msgspec.field(name="RepoTags", default=None)


class _Entry(Struct, frozen=True):
    annotations: Mapping[str, str] = {}


class _Index(Struct, frozen=True):
    manifests: tuple[_Entry, ...] = ()


def contents_of(path: Path, *, docker: bytes | None, index: bytes | None) -> Contents:
    """The names that an archive's own lists give its images. Pure; raises `ImageAway`."""
    try:
        if index is not None:
            names, tags = _oci_names(msgspec.json.decode(index, type=_Index))
            if names or docker is None:
                base = whole_name(_stem(path)).rpartition(":")[0] if tags and not names else ""
                found = (*names, *(f"{base}:{tag}" for tag in tags if base))
                return _some(path, tuple(map(whole_name, found)), base)
        if docker is not None:
            archived = msgspec.json.decode(docker, type=tuple[_Docker, ...])
            return _some(path, tuple(whole_name(tag) for each in archived for tag in each.tags or ()))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ImageAway(f"{path}: its list of images can't be read: {error}") from None
    except Refused as error:
        raise ImageAway(f"{path}: {error}") from None
    raise ImageAway(f"{path}: neither an archive of `docker save` nor an OCI layout")


def _some(path: Path, names: tuple[str, ...], base: str = "") -> Contents:
    if not names:
        raise ImageAway(f"{path}: its images have no names: save them by name and tag")
    return Contents(tuple(dict.fromkeys(names)), base)


def _oci_names(index: _Index) -> tuple[list[str], list[str]]:
    """Whole names, and names that are a tag alone."""
    said = [each.annotations.get(_CONTAINERD_NAME) or each.annotations.get(_OCI_NAME, "") for each in index.manifests]
    return [name for name in said if "/" in name or ":" in name], [
        name for name in said if name and "/" not in name and ":" not in name
    ]


def _stem(path: Path) -> str:
    kept = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in path.name.partition(".")[0].lower())
    return "-".join(filter(None, kept.split("-"))) or "loaded"


def read_contents(path: Path) -> Contents:
    """Blocks while it goes through the archive; raises `ImageAway`."""
    try:
        found = dict(_lists_of_folder(path) if path.is_dir() else _lists_of_archive(path))
    except (OSError, EOFError, tarfile.TarError) as error:
        raise ImageAway(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    return contents_of(path, docker=found.get("manifest.json"), index=found.get("index.json"))


def _lists_of_folder(path: Path) -> Iterator[tuple[str, bytes]]:
    for name in _LISTS:
        with contextlib.suppress(FileNotFoundError), (path / name).open("rb") as file:
            yield name, _bounded(file)


def _lists_of_archive(path: Path) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(path) as archive:
        for count, member in enumerate(archive):
            name = member.name.removeprefix("./").removeprefix("/")
            if name in _LISTS and member.isfile() and (file := archive.extractfile(member)):
                yield name, _bounded(file)
            if count >= _MOST_MEMBERS:
                return


def _bounded(file: IO[bytes]) -> bytes:
    data = file.read(_MOST_INDEX + 1)
    if len(data) > _MOST_INDEX:
        raise ImageAway(f"its list of images is longer than {_MOST_INDEX} bytes")
    return data
