"""Trees of a version, with a MANIFEST as the bundle writes it: made up, or with the programs of this checkout."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rig.rig import CHECKOUT
from support.bytecode import BYTECODE

MARK: Final = "PARTAGE_TEST_TREE"
"""The variable by which a process says of which tree it is."""
SEES_CHECKOUT: Final = (
    "/etc/systemd/system/service.d/checkout.conf",
    "[Service]\nPrivateTmp=no\nProtectHome=no\n"
    + "".join(f"Environment={name}={value}\n" for name, value in BYTECODE.items()),
)
"""For nodes with trees of a checkout's programs: it may lie where units see nothing of the machine's."""
_PROGRAMS: Final = ("partage", "partage-crishim", "partage-broker", "partage-advertiser")
PROGRAM: Final = b"#!/bin/sh\necho made up\n"


def a_tree(folder: Path, version: str, files: Mapping[str, bytes] | None = None) -> Path:
    """Files below `bin` can be run."""
    files = {"bin/partage": PROGRAM, "lib/large": b"x" * 100_000, "VERSION": f"{version}\n".encode(), **(files or {})}
    lines: list[str] = []
    for name, content in sorted(files.items()):
        path, mode = folder / name, 0o755 if name.startswith("bin/") else 0o644
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        lines.append(f"{mode:04o} {hashlib.sha256(content).hexdigest()} {name}\n")
    (folder / "MANIFEST").write_text("".join(lines))
    return folder


def make_tree(folder: Path, version: str, *, instead: Mapping[str, str] | None = None, library: Path) -> Path:
    """`folder`/<version>, which works; `instead` are lines of a shell before a program is executed, by its name."""
    files = {f"systemd/{unit.name}": unit.read_bytes() for unit in (CHECKOUT / "manifests/systemd").iterdir()}
    for program in _PROGRAMS:
        before, real = (instead or {}).get(program, ""), Path(sys.executable).parent / program
        text = f'#!/bin/sh\nexport {MARK}={version} PARTAGE_PRELOAD={library}\n{before}\nexec {real} "$@"\n'
        files[f"bin/{program}"] = text.encode()
    return a_tree(folder / version, version, files)
