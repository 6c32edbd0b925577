"""Control groups for processes of a test, in the hierarchy that all controllers share."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from partage_isolation.audit.proofs import shared_hierarchy
from rig.client.wait import found


@contextmanager
def control_group(name: str = "group") -> Generator[Path]:
    """An empty one, in a folder of the test's own; skips the test where none can be made."""
    top = shared_hierarchy(Path("/proc/self/mountinfo").read_text())
    if top is None:
        pytest.skip("this machine has no control groups of version 2")
    parent = Path(top) / f"partage-test-{uuid.uuid4().hex[:12]}"
    try:
        (parent / name).mkdir(parents=True)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error.strerror}")
    try:
        yield parent / name
    finally:
        for folder in (parent / name, parent):
            _remove(folder)


@contextmanager
def memory_group(limit_bytes: int) -> Generator[Path]:
    """One with a limit of memory, in either version of control groups; skips the test where none can be made."""
    first = Path("/sys/fs/cgroup/memory")
    top, limit = (first, "memory.limit_in_bytes") if first.is_dir() else (Path("/sys/fs/cgroup"), "memory.max")
    group = top / f"partage-test-{uuid.uuid4().hex[:12]}"
    try:
        group.mkdir()
        (group / limit).write_text(str(limit_bytes))
    except OSError as error:
        pytest.skip(f"no control group with a limit of memory can be made here: {error.strerror}")
    try:
        yield group
    finally:
        _remove(group)


def entering(group: Path) -> tuple[str, ...]:
    """Words before a command that put it into the group from its first moment on."""
    return "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"


def _remove(folder: Path) -> None:
    """A process leaves its group a moment after its end is told."""

    def is_gone() -> bool:
        with suppress(OSError):
            folder.rmdir()
        return not folder.exists()

    found(f"{folder} goes", is_gone)
