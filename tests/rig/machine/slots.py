"""A rig's run folder, and the lock that tells whether its owner is alive.

A slot is a small number from which all names of a rig are derived: folder, devices, addresses, cgroups. The holder of
the flock on `<slot>.lock` owns the slot; the kernel releases it when the owner dies for any reason. So an unlocked slot
with remains has no owner, and the next rig cleans it before use. The lock file is created before everything else and
removed after everything else.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rig.errors import MachineUnfit
from rig.machine.addresses import SLOTS

BASE: Final = Path("/var/lib/partage-rig")
"""On disk, because container layers need a real file system; owned by root, because names in it are predictable."""
_TRIES: Final = 1000


@dataclass(frozen=True, eq=False)
class Slot:
    """One claim of a number: a later claim of the same number is another slot."""

    number: int
    base: Path
    fd: int

    @property
    def folder(self) -> Path:
        return self.base / str(self.number)


Clean = Callable[[Slot], None]
_HELD: Final[list[Slot]] = []


def held() -> list[Slot]:
    """The slots of this process, regardless of their content."""
    return list(_HELD)


@contextmanager
def claimed(clean: Clean, base: Path = BASE) -> Generator[Slot]:
    """Claim a slot with an empty folder. `clean` removes what a slot left on the machine, except for its folder."""
    sweep(clean, base)
    slot = _first_free(base)
    try:
        _empty(slot, clean)
        slot.folder.mkdir(mode=0o711)
        _HELD.append(slot)
        yield slot
    finally:
        if slot in _HELD:
            _HELD.remove(slot)
        _give_back(slot, clean)


def sweep(clean: Clean, base: Path = BASE) -> list[int]:
    """Clean every slot whose owner died, and return their numbers."""
    found: list[int] = []
    for number in sorted(_numbers(base)):
        if slot := _try(number, base):
            found.append(number)
            _give_back(slot, clean)
    return found


def owners(base: Path = BASE) -> dict[int, Path]:
    return {number: base / str(number) for number in sorted(_numbers(base)) if not _is_free(number, base)}


def _first_free(base: Path) -> Slot:
    for number in SLOTS:
        if slot := _try(number, base):
            return slot
    raise MachineUnfit(f"all {len(SLOTS)} rigs that a machine has room for are running; stop one (make rig-down)")


def _try(number: int, base: Path) -> Slot | None:
    """Take the lock if it is free. A file unlinked between open and lock belonged to a slot that was just released."""
    path = _lock(number, base)
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if _is_same_file(fd, path):
            os.ftruncate(fd, 0)
            os.write(fd, f"{os.getpid()}\n".encode())
            return Slot(number, base, fd)
    except BlockingIOError:
        pass
    os.close(fd)
    return None


def _open(path: Path) -> int:
    """Open the lock file. The machine's last rig may remove the folder at any moment, even during mkdir."""
    for _ in range(_TRIES):
        with suppress(FileNotFoundError, FileExistsError):
            path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    raise MachineUnfit(f"cannot make {path}; is {path.parent} a folder?")


def _is_same_file(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _is_free(number: int, base: Path) -> bool:
    try:
        fd = os.open(_lock(number, base), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    else:
        return True
    finally:
        os.close(fd)


def _empty(slot: Slot, clean: Clean) -> None:
    clean(slot)
    if slot.folder.exists():
        shutil.rmtree(slot.folder)


def _give_back(slot: Slot, clean: Clean) -> None:
    try:
        _empty(slot, clean)
        _lock(slot.number, slot.base).unlink()
        with suppress(OSError):  # another rig has files in it
            slot.base.rmdir()
    finally:
        os.close(slot.fd)


def _lock(number: int, base: Path) -> Path:
    return base / f"{number}.lock"


def _numbers(base: Path) -> set[int]:
    """Numbers of all slots with a lock or a folder."""
    try:
        stems = {name.removesuffix(".lock") for name in (entry.name for entry in base.iterdir())}
    except FileNotFoundError:
        return set()
    return {int(stem) for stem in stems if stem.isdecimal() and int(stem) in SLOTS}
