"""A program: makes a key pair, then retires it, killed before each step in turn, and reports what was left.

It forks, which a test process with threads must not. It prints one JSON object per kill.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_base.keyring import KeyFolders, add_pair, load_private_keys, overview, retire
from unit.keyring.samples import files_below, new_pair
from unit.keyring.steps import at_step, without_nameless_files

ENOUGH = 200


def main(change: str, nameless: str) -> None:
    for number in range(1, ENOUGH):
        with tempfile.TemporaryDirectory() as place:
            folders = KeyFolders.at_root(Path(place))
            before = [new_pair(folders) for _ in range(2)] if change == "retire" else []
            killed = _killed(folders, change, nameless=nameless == "yes", number=number)
            sys.stdout.write(json.dumps(_left(folders, killed=killed, before=before)) + "\n")
        if not killed:
            return


def _killed(folders: KeyFolders, change: str, *, nameless: bool, number: int) -> bool:
    child = os.fork()
    if child == 0:
        with nullcontext() if nameless else without_nameless_files():
            with at_step(number, lambda: os.kill(os.getpid(), signal.SIGKILL)):
                _do(folders, change)
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def _do(folders: KeyFolders, change: str) -> None:
    if change == "retire":
        retire(folders, min(overview(folders).entries, key=lambda entry: entry.use.value).id)
    else:
        add_pair(folders, Ed25519PrivateKey.generate())


def _left(folders: KeyFolders, *, killed: bool, before: Sequence[str]) -> dict[str, object]:
    """The files left by the kill, and after the same machine makes another pair."""
    seen = overview(folders)
    report: dict[str, object] = {
        "killed": killed,
        "before": sorted(before),
        "verify": sorted(entry.id for entry in seen.entries if entry.public),
        "private": sorted(load_private_keys(folders.private).keys) if folders.private.exists() else [],
        "signing": seen.signing,
        "faults": [str(fault) for fault in seen.faults],
        "files": files_below(folders.public.parent),
        "hidden": _hidden_secrets(folders),
    }
    new_pair(folders)
    seen = overview(folders)
    return report | {"signing_later": seen.signing, "hidden_later": _hidden_secrets(folders)}


def _hidden_secrets(folders: KeyFolders) -> list[str]:
    return [str(file) for file in folders.private.glob(".*") if b"PRIVATE" in file.read_bytes()]


if __name__ == "__main__":
    main(*sys.argv[1:])
