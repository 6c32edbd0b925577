"""What else partage leaves on a node: libraries, a folder below /run, and the trees with our own program.

The trees are removed last, by a script that is written to the node before: it does not need them, and can be run again
by hand.
"""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import msgspec

from partage_base.claim_records import ClaimRecords
from partage_base.daemon.errors import BadConfiguration
from partage_base.daemon.resolution import resolve
from partage_base.daemon.sources import DEFAULT_PATH, read_toml
from partage_base.files import write_whole
from partage_cli.doctor.local_node import Unseen, names_in, text_of
from partage_cli.installation.errors import StepFailed
from partage_cli.installation.host import Host
from partage_cli.installation.places import STATE, TREES
from partage_cli.installation.removal.drain import ClaimName
from partage_dra.spec_file import SpecFiles
from partage_gpu.node.nvidia_specs import FOLDERS, OUR_FILE
from partage_isolation.library.current import CURRENT as LINK
from partage_isolation.settings import BrokerSettings
from partage_isolation.store.specs import FOLDER as LIMITS
from partage_plugins.api.places import INVENTORY_FILE
from partage_plugins.errors import DecodeError

RUN: Final = str(Path(INVENTORY_FILE).parent)
CARDS: Final = f"{FOLDERS[0]}/{OUR_FILE}"
"""The CDI spec of cards; a runtime reads it only when it creates a container."""
LAST_ACT: Final = f"{STATE}/last-act"
"""The script that removes the rest, and itself."""


class _Limits(msgspec.Struct, frozen=True):
    library: str


def trees(host: Host) -> tuple[Path, ...]:
    """The trees of all versions on the node."""
    return tuple(path for path in _folders(host.path(TREES)) if (path / "VERSION").is_file())


def libraries(host: Host) -> tuple[Path, ...]:
    """The folders of all versions of the preload library."""
    return _folders(library_folder(host))


def library_folder(host: Host) -> Path:
    """From the node's configuration file; raises `StepFailed`."""
    try:
        toml = read_toml(host.path(DEFAULT_PATH), required=False)
        found = resolve(BrokerSettings, "broker", toml=toml, environment={}, flags={})
    except BadConfiguration as error:
        raise StepFailed("; ".join(map(str, error.mistakes))) from None
    return host.path(found.settings.library_folder)


def current_library(host: Host) -> str:
    """The library version that new containers get; empty for none."""
    link = library_folder(host) / LINK
    return link.readlink().name if link.is_symlink() else ""


def used_libraries(host: Host) -> frozenset[str]:
    """Library versions in use; a program whose library is gone runs without limits. Raises `StepFailed`."""
    return frozenset(_used(host))


def claims(host: Host) -> frozenset[ClaimName]:
    """Claims that the DRA driver prepared; one whose record can't be read has no name, so its pods are not found."""
    records, found = ClaimRecords(host.root), set[ClaimName]()
    for uid in records.uids():
        with contextlib.suppress(DecodeError):
            if (record := records.of(uid)) is not None:
                found.add(ClaimName(record.claim.namespace, record.claim.name))
    return frozenset(found)


def remove_specs(host: Host) -> None:
    """Removes the CDI specs of cards and claims."""
    host.path(CARDS).unlink(missing_ok=True)
    SpecFiles(host.root).keep_only(())


def remove(folders: Collection[Path]) -> None:
    for each in folders:
        shutil.rmtree(each, ignore_errors=True)


def remove_libraries_but(host: Host, kept: Collection[str]) -> None:
    """Also removes the broker's other files beside them."""
    remove([each for each in libraries(host) if each.name not in kept])
    folder = library_folder(host)
    names = names_in(folder)
    if isinstance(names, Unseen):
        return
    for name in set(names) - set(kept):
        (folder / name).unlink(missing_ok=True)
    if names_in(folder) == ():
        folder.rmdir()


def write_last_act(host: Host) -> Path:
    """Writes the script that removes trees and journal; it can be interrupted and run again."""
    script = host.path(LAST_ACT)
    there, state, parent, itself = (
        shlex.quote(str(each)) for each in (host.path(TREES), script.parent, script.parent.parent, script)
    )
    text = f"""\
#!/bin/sh
# Takes away what `partage node uninstall` leaves to the last: the trees, with that program in them, and its journal.
rm -rf {there} || exit 1
for each in {state}/* {state}/.[!.]*; do [ "$each" = {itself} ] || rm -rf "$each"; done
rm -rf {state} || exit 1
rmdir {parent} 2>/dev/null
exit 0
"""
    write_whole(script, text.encode(), mode=0o700, synced=True)
    return script


def _folders(folder: Path) -> tuple[Path, ...]:
    names = names_in(folder)
    found = () if isinstance(names, Unseen) else (folder / name for name in names)
    return tuple(path for path in found if path.is_dir() and not path.is_symlink())


def _used(host: Host) -> Iterator[str]:
    folder = host.path(LIMITS)
    names = names_in(folder)
    for name in () if isinstance(names, Unseen) else names:
        text = text_of(folder / name)
        if isinstance(text, Unseen):
            continue  # its container has just ended
        try:
            yield Path(msgspec.json.decode(text, type=_Limits).library).name
        except msgspec.MsgspecError:
            raise StepFailed(f"{folder / name} cannot be read, so it is not known which library is in use") from None
