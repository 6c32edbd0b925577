"""Checks that passed, in ~/.cache/partage/checks: a command is not run again on the same files.

This is only for commands whose result depends on files alone, never for tests. Failures are not recorded, nor a check
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
"""The configuration of tools, and their versions."""


class Passed:
    """Keys of passed checks, each an empty file. If one can't be read or written, the command runs again."""

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
    """A hash of the command, the interpreter, and its files with their modes; empty if they can't be listed."""
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *reads, *_ALWAYS)
    if not listed:
        return ""
    words = [word.replace(str(root), "") for word in argv]
    whole = sha256(repr((words, platform.python_version(), platform.machine())).encode())
    for path in (root / name for name in sorted(set(listed.split("\0")) - {""})):
        try:
            content, is_program = path.read_bytes(), bool(path.stat().st_mode & 0o100)
        except FileNotFoundError:  # deleted, but the deletion is not committed
            continue
        except OSError:
            return ""
        whole.update(f"{path.relative_to(root)} {is_program} {len(content)}\n".encode() + content)
    return whole.hexdigest()
