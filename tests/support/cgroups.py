"""cgroups for processes of a test, in the unified hierarchy."""

from __future__ import annotations

import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from partage_isolation.audit.proofs import shared_hierarchy
from rig.client.wait import found
from rig.machine.cgroups import OF_TESTS


@contextmanager
def control_group(name: str = "group") -> Generator[Path]:
    """An empty cgroup in a folder of the test's own; skips the test if none can be created."""
    top = shared_hierarchy(Path("/proc/self/mountinfo").read_text())
    if top is None:
        pytest.skip("this machine has no control groups of version 2")
    parent = Path(top) / f"{OF_TESTS}{uuid.uuid4().hex[:12]}"
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
    """A cgroup with a memory limit, of version 1 or 2; skips the test if none can be created."""
    first = Path("/sys/fs/cgroup/memory")
    top, limit = (first, "memory.limit_in_bytes") if first.is_dir() else (Path("/sys/fs/cgroup"), "memory.max")
    group = top / f"{OF_TESTS}{uuid.uuid4().hex[:12]}"
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
    """A command prefix that moves the process into the cgroup before it execs."""
    return "sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"


def _remove(folder: Path) -> None:
    """Remove the cgroup; a process leaves it a moment after its exit is reported."""

    def is_gone() -> bool:
        with suppress(OSError):
            folder.rmdir()
        return not folder.exists()

    found(f"{folder} goes", is_gone)
