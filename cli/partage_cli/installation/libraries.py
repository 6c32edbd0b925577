"""The preload library on a node: its versions, and which of them containers use."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator
from pathlib import Path

import msgspec

from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.resolution import resolve
from partage_base.daemon.sources import DEFAULT_PATH, read_toml
from partage_cli.doctor.local_node import Unseen, names_in, text_of
from partage_cli.installation.errors import StepFailed
from partage_isolation.library.current import CURRENT
from partage_isolation.settings import BrokerSettings
from partage_isolation.store.specs import FOLDER as LIMITS


class _Limits(msgspec.Struct, frozen=True):
    library: str


def library_folder(root: Path) -> Path:
    """From the node's configuration file; raises `StepFailed`."""
    try:
        toml = read_toml(root / DEFAULT_PATH, required=False)
        found = resolve(BrokerSettings, "broker", toml=toml, environment={}, flags={})
    except BadConfiguration as error:
        raise StepFailed("; ".join(map(str, error.mistakes))) from None
    return root / str(found.settings.library_folder).lstrip("/")


def libraries(root: Path) -> tuple[Path, ...]:
    """The folders of all versions."""
    folder = library_folder(root)
    names = names_in(folder)
    found = () if isinstance(names, Unseen) else (folder / name for name in names)
    return tuple(path for path in found if path.is_dir() and not path.is_symlink())


def current_library(root: Path) -> str:
    """The version that new containers get; empty for none."""
    link = library_folder(root) / CURRENT
    return link.readlink().name if link.is_symlink() else ""


def used_libraries(root: Path) -> frozenset[str]:
    """Versions in use; a program whose library is gone runs without limits. Raises `StepFailed`."""
    return frozenset(_used(root / LIMITS))


def keep_libraries(root: Path, kept: Collection[str]) -> None:
    """Deletes the folder of every version that `kept` does not name."""
    for each in libraries(root):
        if each.name not in kept:
            shutil.rmtree(each, ignore_errors=True)


def _used(folder: Path) -> Iterator[str]:
    names = names_in(folder)
    for name in () if isinstance(names, Unseen) else names:
        text = text_of(folder / name)
        if isinstance(text, Unseen):
            continue  # its container has just ended
        try:
            yield Path(msgspec.json.decode(text, type=_Limits).library).name
        except msgspec.MsgspecError:
            raise StepFailed(f"{folder / name} cannot be read, so it is not known which library is in use") from None
