"""A checkout without some mechanisms, and the soak run from it, with all that daemons and containers run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from rig.rig import CHECKOUT
from soak.siege.mechanisms import MECHANISMS, Edit, all_of

_COPIES: Final = ".cache/without"
_BUILDS: Final = (".cache/simgpu", ".cache/preload")
"""Keyed by the state of their sources: edited sources are built again."""
_PACKAGES: Final = "lib/python*/site-packages/_partage.pth"


def edited(text: str, edit: Edit) -> str:
    """The text without the mechanism; an error if that is not there exactly once."""
    if text.count(edit.old) != 1:
        raise ValueError(f"{edit.path} has {text.count(edit.old)} times, and not once: {edit.old!r}")
    return text.replace(edit.old, edit.new)


@contextmanager
def without(names: Iterable[str]) -> Generator[Path]:
    """A copy without these; deleted afterwards."""
    copy = CHECKOUT / _COPIES / str(os.getpid())
    try:
        _copy(copy)
        for name in all_of(names):
            for edit in MECHANISMS[name].edits:
                path = copy / edit.path
                path.write_text(edited(path.read_text(), edit))
        yield copy
    finally:
        shutil.rmtree(copy, ignore_errors=True)


def run_without(names: Sequence[str], arguments: Sequence[str]) -> set[str]:
    """Verdicts that failed in a run of this soak from such a copy."""
    with without(names) as copy:
        argv = ("tools/named", "soak", "hostile", *arguments)
        with subprocess.Popen(argv, cwd=copy, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            last = ""
            for last in process.stdout:
                sys.stdout.write(last)
                sys.stdout.flush()
    told: dict[str, Any] = json.loads(last)
    return set(told["failed"])


def _copy(copy: Path) -> None:
    """Files that git does not ignore are copied; only third-party packages and builds are shared."""
    listed = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    names = subprocess.run(listed, cwd=CHECKOUT, capture_output=True, check=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(CHECKOUT / name, target, follow_symlinks=False)
    for linked in (".venv", *_BUILDS):
        shutil.copytree(CHECKOUT / linked, copy / linked, symlinks=True, copy_function=os.link)
    for path in (copy / ".venv").glob(_PACKAGES):
        text = path.read_text().replace(str(CHECKOUT), str(copy))
        path.unlink()
        path.write_text(text)
