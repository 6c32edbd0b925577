"""Made-up trees of a version, with a MANIFEST as the bundle writes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

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
