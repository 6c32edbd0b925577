"""The base images.

Dynamic libraries are at the paths where the loader looks for them, found by asking the loader. So the glibc image needs
no library cache, and works wherever the machine's own programs do.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from rig.errors import BuildFailed, MachineUnfit
from rig.images import elf
from rig.images.image import Image
from rig.images.layers import Entry, File, Folder, HardLink
from rig.programs import ensure

SOURCES: Final = Path(__file__).parent / "c"
_FLAGS: Final = ("-std=gnu11", "-Os", "-Wall", "-Wextra", "-Werror")
_PACKAGES: Final = {"cc": "gcc and libc6-dev", "musl-gcc": "musl-tools"}


def compiled(source: Path, *, compiler: str = "cc", flags: tuple[str, ...] = ()) -> bytes:
    """Compile one C file; `cc` links glibc, `musl-gcc` musl."""
    if shutil.which(compiler) is None:
        raise MachineUnfit(f"{compiler} is missing; install {_PACKAGES.get(compiler, 'it')}")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / source.stem
        command = [compiler, *_FLAGS, *flags, "-o", str(program), str(source)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildFailed(f"{compiler} cannot compile {source}:\n{done.stderr}")
        return program.read_bytes()


SANDBOX: Final = "registry.k8s.io/pause:3.10.2"
"""The name under which containerd 2.3 pulls `pause`, unless its configuration pins another."""

_FOLDERS: Final = ("bin", "dev", "etc", "home", "lib", "lib64", "opt", "proc", "root", "run", "sbin", "srv", "sys")
_FOLDERS_BELOW: Final = ("usr", "usr/bin", "usr/lib", "usr/local", "usr/local/bin", "usr/sbin", "var", "var/run")
_USERS: Final = b"""\
root:x:0:0:root:/root:/bin/sh
daemon:x:1:1:daemon:/usr/sbin:/bin/false
www-data:x:33:33:www-data:/var/www:/bin/false
nobody:x:65534:65534:nobody:/nonexistent:/bin/false
"""
_GROUPS: Final = b"""\
root:x:0:
daemon:x:1:
tty:x:5:
www-data:x:33:
nogroup:x:65534:
"""
_OF_COREUTILS: Final = (
    "cat chmod cp date dd echo env false head id ln ls mkdir mv nproc printenv printf pwd readlink rm seq sha256sum"
    " sleep sort stat tail tee test timeout touch tr true uname wc"
)
_DYNAMIC: Final = (*_OF_COREUTILS.split(), "grep", "sed")
_LISTED: Final = SOURCES / "mapped.c"
_LIBDL: Final = f"/lib/{os.uname().machine}-linux-gnu/libdl.so.2"


@cache
def busybox() -> Image:
    """The static busybox, under the names of all its applets; they are hard links, so each can be masked separately."""
    return Image.of([*_ground(), *_applets()])


@cache
def glibc() -> Image:
    """The machine's own loader, libc, shell and tools, all dynamic, and `mapped`."""
    tools = {f"/bin/{name}": _found(name) for name in ("dash", *_DYNAMIC)}
    libraries = {path for tool in set(tools.values()) for path in elf.needed(tool)}
    entries = [*_named(tools), HardLink("/bin/sh", "/bin/dash"), *_libraries(libraries)]
    return Image.of([*_ground(), *entries, File("/bin/mapped", compiled(_LISTED))])


@cache
def preloadable() -> Image:
    """`glibc` with what our library also needs: a part of glibc that is in every distribution's package."""
    return glibc().with_files({_LIBDL: Path(_LIBDL)})


@cache
def musl() -> Image:
    """The loader of musl, the static busybox as a shell, and `mapped`."""
    program = compiled(_LISTED, compiler="musl-gcc")
    with tempfile.NamedTemporaryFile() as file:
        file.write(program)
        file.flush()
        libraries = elf.needed(Path(file.name))
    return Image.of([*_ground(), *_applets(), *_libraries(libraries), File("/bin/mapped", program)])


@cache
def pause() -> Image:
    """A program that waits, reaps orphans, and ends on a signal."""
    program = compiled(SOURCES / "pause.c", compiler="musl-gcc", flags=("-static",))
    return Image.of([File("/pause", program)]).starting("/pause")


def _ground() -> list[Entry]:
    """The folders and users that every image has."""
    folders = [Folder(f"/{path}") for path in (*_FOLDERS, *_FOLDERS_BELOW)]
    users = [File("/etc/passwd", _USERS, 0o644), File("/etc/group", _GROUPS, 0o644)]
    return [*folders, Folder("/tmp", 0o1777), Folder("/var/tmp", 0o1777), *users]  # noqa: S108 - in an image


def _applets() -> list[Entry]:
    program = ensure("busybox")["busybox"]  # a static one, from the machine or the cache
    done = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    names = sorted(set(done.stdout.split()) - {"busybox"})
    return [File("/bin/busybox", program.read_bytes()), *(HardLink(f"/bin/{name}", "/bin/busybox") for name in names)]


def _named(programs: dict[str, Path]) -> list[Entry]:
    """Programs by path in the image; a file with several names is stored once."""
    first: dict[Path, str] = {}
    entries: list[Entry] = []
    for path, program in programs.items():
        if program in first:
            entries.append(HardLink(path, first[program]))
        else:
            first[program] = path
            entries.append(File(path, program.read_bytes()))
    return entries


def _libraries(paths: Iterable[str]) -> list[Entry]:
    """Libraries at their loader's paths, with the missing folders."""
    there = {f"/{path}" for path in (*_FOLDERS, *_FOLDERS_BELOW)}
    folders = {str(above) for path in paths for above in PurePosixPath(path).parents} - there - {"/"}
    return [*map(Folder, sorted(folders)), *(File(path, Path(path).read_bytes()) for path in sorted(paths))]


def _found(name: str) -> Path:
    """A program of this machine, with all symbolic links resolved."""
    path = shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")
    if path is None:
        raise MachineUnfit(f"this machine lacks {name}; install it")
    return Path(path).resolve()
