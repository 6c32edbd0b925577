"""``partage keys``: make, show, list and retire the keys that sign allocations.

This module has only arguments and options: `partage_base.keyring` works on the files, and `in_cluster` has the commands
for a cluster.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import click
import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from partage_base.keyring import (
    KeyEntry,
    KeyFolders,
    KeyUnknown,
    Overview,
    Use,
    add_pair,
    encode_public,
    is_key_id,
    load_private_keys,
    load_public_keys,
    overview,
    retire,
)
from partage_cli.clusters import KUBECONFIG, NAMESPACE
from partage_cli.keys.in_cluster import ensure, rotate
from partage_cli.keys.in_cluster import retire as retire_in_cluster
from partage_cli.main import FOUND_WRONG, SUBCOMMANDS
from partage_cli.tables import age, table
from partage_plugins.api.names import KeyId

_LAYOUT: Final = """\b
Files:
  keys.d/ID.pub       the public half: it verifies. Goes to every machine
  signing.d/ID.key    the private half. Stays with the scheduler
  signing.d/signing   the id of the one key that signs
"""


def _folders(context: click.Context, _parameter: click.Parameter, value: Path | None) -> KeyFolders:
    return KeyFolders.at_root(context.obj) if value is None else KeyFolders.below(value)


def _key_id(_context: click.Context, _parameter: click.Parameter, value: str | None) -> KeyId | None:
    if value is None or is_key_id(value):
        return None if value is None else KeyId(value)
    raise click.BadParameter(f"{value!r} is not a key id; allowed: 16 lower-case hex digits, see `partage keys list`")


_DIR: Final = click.option(
    "--dir",
    "folders",
    type=click.Path(path_type=Path),
    callback=_folders,
    help="The folder that holds keys.d and signing.d.  [default: ROOT/etc/partage]",
)


@click.group(name="keys", short_help=SUBCOMMANDS["keys"].summary, epilog=_LAYOUT)
def command() -> None:
    """Make, list and retire the keys that sign allocations."""


@command.command(
    epilog="""\b
Examples:
  partage keys new
  id=$(partage keys new --dir ./keys)
"""
)
@_DIR
def new(folders: KeyFolders) -> None:
    """Make a pair of keys and print its id.

    The first key signs at once. A later one waits until the key before it is retired, so that its public half can reach
    every node first. Nothing is overwritten.
    """
    added = add_pair(folders, Ed25519PrivateKey.generate())
    click.echo(added.id)
    click.echo(f"private half: {added.private} (keep it with the scheduler)", err=True)
    click.echo(f"public half:  {added.public} (copy it to every node)", err=True)
    _tell_who_signs(added.signs)


@command.command(
    epilog="""\b
Examples:
  partage keys public > keys.pem
  partage keys public 0f3a9c51d2e87b64
"""
)
@click.argument("key", metavar="[ID]", required=False, callback=_key_id)
@_DIR
def public(folders: KeyFolders, key: KeyId | None) -> None:
    """Print the public half of a key as PEM, even where only its private half is here.

    Without an ID: of the key that signs, or of the only key.
    """
    keys = _public_halves(folders)
    found = keys.get(key or _meant(folders, keys))
    if found is None:
        raise KeyUnknown(
            f"there is no key {key} in {folders.public} or {folders.private}; `partage keys list` shows all"
        )
    click.echo(encode_public(found), nl=False)


@command.command(
    name="list",
    epilog="""\b
Examples:
  partage keys list
  kubectl partage keys list -o json
""",
)
@click.option("-o", "--output", type=click.Choice(["table", "wide", "json"]), default="table", show_default=True)
@_DIR
def list_(folders: KeyFolders, output: str) -> int:
    """List the keys and what each is used for, oldest first.

    Files that give no key are named on stderr, and the exit code is then 3.
    """
    seen = overview(folders)
    click.echo(as_json(seen) if output == "json" else as_table(seen, time.time(), wide=output == "wide"), nl=False)
    for fault in seen.faults:
        click.echo(f"partage: {fault}", err=True)
    return FOUND_WRONG if seen.faults else 0


@command.command(
    name="retire",
    epilog="""\b
Examples:
  partage keys retire 0f3a9c51d2e87b64
""",
)
@click.argument("key", metavar="ID", callback=_key_id)
@click.option(
    "--force", is_flag=True, help="Even if no key can sign afterwards, or nodes and pods still need this one."
)
@click.option("--in-cluster", is_flag=True, help="Take the public half of a key that signs no more from a cluster.")
@KUBECONFIG
@NAMESPACE
@_DIR
def retire_(  # noqa: PLR0913 (one parameter for each word of the command line)
    folders: KeyFolders, key: KeyId, *, force: bool, in_cluster: bool, kubeconfig: Path | None, namespace: str
) -> None:
    """Remove the private half of a key, so that it never signs again.

    Its public half stays: what it signed verifies until that file is removed from every node. Where it was the key that
    signs, the waiting one takes over.

    With --in-cluster the key is one that `partage keys rotate` has replaced, and its public half goes: nodes believe it
    no more. That is refused while a node in force does not trust the key that signs now, and while a pod needs the old
    one.
    """
    if in_cluster:
        retire_in_cluster(key, force=force, kubeconfig=kubeconfig, namespace=namespace)
        return
    retired = retire(folders, key, force=force)
    click.echo(f"removed the private half of {key}; {retired.public} still verifies", err=True)
    _tell_who_signs(retired.signs)


command.add_command(ensure)
command.add_command(rotate)


def _public_halves(folders: KeyFolders) -> dict[KeyId, Ed25519PublicKey]:
    private = load_private_keys(folders.private).keys
    return {key: half.public_key() for key, half in private.items()} | dict(load_public_keys(folders.public).keys)


def _meant(folders: KeyFolders, keys: Mapping[KeyId, Ed25519PublicKey]) -> KeyId:
    meant = overview(folders).signing or (next(iter(keys)) if len(keys) == 1 else None)
    if meant is None:
        raise KeyUnknown(f"no key signs here, so say which is meant: {', '.join(sorted(keys)) or 'there is none'}")
    return meant


def _tell_who_signs(key: KeyId | None) -> None:
    click.echo("no key signs now" if key is None else f"signs now:    {key}", err=True)


_HEADER: Final = ("ID", "USE", "FILE", "AGE")
_WIDE: Final = (*_HEADER, "PRIVATE", "SINCE", "MEANS")
_MEANS: Final = {
    Use.SIGNING: "signs, and verifies",
    Use.WAITING: "verifies; signs when the one before it is retired",
    Use.VERIFY_ONLY: "verifies",
}


def as_table(seen: Overview, now: float, *, wide: bool) -> str:
    """For people. `now` is in seconds since the epoch."""
    return table(
        _WIDE if wide else _HEADER, ([*_cells(entry, now), *(_more(entry) if wide else ())] for entry in seen.entries)
    )


def as_json(seen: Overview) -> bytes:
    """For programs: a list of keys."""
    rows = [
        {
            "id": entry.id,
            "use": entry.use.value,
            "public": _path(entry.public),
            "private": _path(entry.private),
            "since": _since(entry),
        }
        for entry in seen.entries
    ]
    return msgspec.json.encode(rows) + b"\n"


def _cells(entry: KeyEntry, now: float) -> tuple[str, ...]:
    lived = None if entry.since is None else now - entry.since
    return (entry.id, entry.use.value, _path(entry.public or entry.private) or "", age(lived))


def _more(entry: KeyEntry) -> tuple[str, ...]:
    return (_path(entry.private) or "-", _since(entry) or "unknown", _MEANS[entry.use])


def _since(entry: KeyEntry) -> str | None:
    if entry.since is None:
        return None
    return datetime.fromtimestamp(entry.since, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _path(file: Path | None) -> str | None:
    return None if file is None else str(file)
