"""`kubectl partage` for krew: an archive that runs wherever it is unpacked, and the manifest that refers to it.

It is the scheduler's tree, which has all that the command line needs, without the files tied to that tree's location: a
script starts its Python by its own loader.
"""

from __future__ import annotations

import tarfile
from collections.abc import Mapping
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Final

import msgspec

from partage_bundle import layer
from partage_bundle.bill_of_materials import MANIFEST
from partage_bundle.layer import Layer, header
from partage_bundle.process import ROOT
from partage_bundle.recipe import Machine

TREE: Final = "scheduler"
PROGRAM: Final = "kubectl-partage"
_OF_ITS_PLACE: Final = ("bin/partage", "bin/kubectl-partage", MANIFEST, "pyvenv.cfg")
"""Path prefixes of files that are valid only where a tree is installed."""
_LAUNCHER: Final = """\
#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
exec "$here/lib/{loader}" --library-path "$here/lib" "$here/bin/python3" -s -P "$here/{program}.py" "$@"
"""
_SCRIPT: Final = "from partage_cli.main import main\n\nmain()\n"
_SHORT: Final = "See and explain shares of GPUs"
_LONG: Final = """\
Shows which pods share which cards (nodes, top), says why a pod waits and what would make it fit (explain), and finds
what disagrees (audit). partage has to be in the cluster.
"""


def archive(tree: Path, machine: Machine) -> Layer:
    """Packed once for each tree."""
    files = {
        PROGRAM: _LAUNCHER.format(loader=machine.loader, program=PROGRAM).encode(),
        f"{PROGRAM}.py": _SCRIPT.encode(),
        "LICENSE": (ROOT / "LICENSE").read_bytes(),
    }
    key = sha256((tree / MANIFEST).read_bytes() + Path(__file__).read_bytes()).hexdigest()
    return layer.made(key, lambda tar: _add(tar, tree, files))


def manifest(version: str, at: str, digests: Mapping[Machine, tuple[str, str]]) -> bytes:
    """`digests` has the name of each machine's archive, which is below the address `at`, and its SHA-256."""
    platforms = [
        {
            "selector": {"matchLabels": {"os": "linux", "arch": machine.debian}},
            "uri": f"{at.rstrip('/')}/{name}",
            "sha256": digest,
            "bin": PROGRAM,
        }
        for machine, (name, digest) in digests.items()
    ]
    return msgspec.yaml.encode(
        {
            "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
            "kind": "Plugin",
            "metadata": {"name": PROGRAM.removeprefix("kubectl-")},
            "spec": {
                "version": f"v{version}",
                "shortDescription": _SHORT,
                "description": _LONG,
                "platforms": platforms,
            },
        }
    )


def _add(tar: tarfile.TarFile, tree: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        mode = 0o755 if name == PROGRAM else 0o644
        tar.addfile(header(name, mode, size=len(content)), BytesIO(content))
    for path in sorted(tree.rglob("*")):
        name = str(path.relative_to(tree))
        if path.is_file() and not name.startswith(_OF_ITS_PLACE):
            with path.open("rb") as file:
                tar.addfile(header(name, path.stat().st_mode & 0o777, size=path.stat().st_size), file)
