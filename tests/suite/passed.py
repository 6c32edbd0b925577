"""Checks that passed, in ~/.cache/partage/checks: such a command passes again on the same files, so it is not run.

This is for commands whose result follows from files alone, never for tests. One that failed is not remembered, nor one
during which a file changed. All checkouts of the user share this: a fresh clone knows what was checked before a push.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from suite.history import cache_folder, git

_KEPT_S: Final = 14 * 24 * 3600
_ALWAYS: Final = ("pyproject.toml", "simgpu/pyproject.toml", "requirements/*", "*.ini", "*.cfg", ".gitignore")
"""What tools are configured by, and their versions."""


class Passed:
    """Keys of what passed, each an empty file. One that can't be read or written costs another run of the command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @classmethod
    def of_user(cls) -> Passed:
        return cls(cache_folder() / "checks")

    def has(self, key: str) -> bool:
        with suppress(OSError):
            os.utime(self._folder / key)
            return bool(key)
        return False

    def add(self, key: str) -> None:
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            (self._folder / key).touch()
            for each in self._folder.iterdir():
                if each.stat().st_mtime < time.time() - _KEPT_S:
                    each.unlink()


def key_of(root: Path, argv: Sequence[str], reads: Sequence[str]) -> str:
    """Of the command, the interpreter, and all files that it reads with their modes; empty where they can't be told."""
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *reads, *_ALWAYS)
    if not listed:
        return ""
    words = [word.replace(str(root), "") for word in argv]
    whole = sha256(repr((words, platform.python_version(), platform.machine())).encode())
    for path in (root / name for name in sorted(set(listed.split("\0")) - {""})):
        try:
            content, is_program = path.read_bytes(), bool(path.stat().st_mode & 0o100)
        except FileNotFoundError:  # deleted, and not yet committed so
            continue
        except OSError:
            return ""
        whole.update(f"{path.relative_to(root)} {is_program} {len(content)}\n".encode() + content)
    return whole.hexdigest()
