"""Trees of a version, with a MANIFEST as the bundle writes it: fake ones, or with the programs of this checkout."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from rig.rig import CHECKOUT
from support.bytecode import BYTECODE

MARK: Final = "PARTAGE_TEST_TREE"
"""Variable that holds the version of a process's tree."""
SEES_CHECKOUT: Final = (
    "/etc/systemd/system/service.d/checkout.conf",
    "[Service]\nPrivateTmp=no\nProtectHome=no\n"
    + "".join(f"Environment={name}={value}\n" for name, value in BYTECODE.items()),
)
"""Drop-in for nodes with trees of the checkout's programs, which may be in a folder that units can't see by default."""
_PROGRAMS: Final = ("partage", "partage-crishim", "partage-broker", "partage-advertiser")
PROGRAM: Final = b"#!/bin/sh\necho made up\n"


def a_tree(folder: Path, version: str, files: Mapping[str, bytes] | None = None) -> Path:
    """A fake tree; files below `bin` are executable."""
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
    """A working tree `folder`/<version>; `instead` has shell lines that run before a program's exec, by program."""
    files = {f"systemd/{unit.name}": unit.read_bytes() for unit in (CHECKOUT / "manifests/systemd").iterdir()}
    for program in _PROGRAMS:
        before, real = (instead or {}).get(program, ""), Path(sys.executable).parent / program
        text = f'#!/bin/sh\nexport {MARK}={version} PARTAGE_PRELOAD={library}\n{before}\nexec {real} "$@"\n'
        files[f"bin/{program}"] = text.encode()
    return a_tree(folder / version, version, files)
