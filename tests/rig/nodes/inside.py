"""A node's first process: builds its file system, then reaps orphans until it is killed, or execs another program.

Such a program is PID 1 there, as systemd is. `unshare` runs `python -I inside.py SPEC` in the node's new namespaces. It
dies with its parent, and because it is PID 1, everything that ever ran in the node dies with it, and the mounts and
devices are removed, too. So a node can't be left behind. It uses only the standard library, and never imports from its
own folder.

/etc, /opt, /run and /var are copy-on-write: programs find the machine's files and write to their usual paths, while the
machine's own files stay unchanged. Settings that kubelet would change for the whole machine are files of the node.

Disk contents are kept for the next start of the same node; those of /run are not.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import socket
import stat
import sys
from pathlib import Path
from typing import Final

_MS_BIND: Final = 0x1000
_MS_REC: Final = 0x4000
_MS_PRIVATE: Final = 0x40000
_MS_SHARED: Final = 0x100000
_libc = ctypes.CDLL(None, use_errno=True)


def mount(source: str, target: str, kind: str = "none", flags: int = 0, data: str = "") -> None:
    """Mount by the system call: the program would resolve /proc/self/fd/N to a path that no longer leads there."""
    if _libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode()):
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {source} on {target} ({kind} {data}): {os.strerror(number)}")


def copy_on_write(folder: str, own: Path, hidden: list[str]) -> None:
    """Redirect writes below `folder` to the node's own place, and hide the host's `hidden` paths."""
    upper, work = own / "written" / folder.strip("/"), own / "overlay-work" / folder.strip("/")
    if folder == "/run" and upper.exists():
        shutil.rmtree(upper)
    upper.mkdir(parents=True, exist_ok=True)
    work.mkdir(parents=True, exist_ok=True)
    upper.chmod(Path(folder).stat().st_mode & 0o7777)
    for path in (each for each in hidden if each.startswith(f"{folder}/")):
        hide = upper / path.removeprefix(f"{folder}/")
        hide.parent.mkdir(parents=True, exist_ok=True)
        if not os.path.lexists(hide):
            os.mknod(hide, stat.S_IFCHR, os.makedev(0, 0))  # an overlayfs whiteout
    mount("overlay", folder, "overlay", 0, f"lowerdir={folder},upperdir={upper},workdir={work}")


def keep_visible(folders: list[str]) -> dict[str, int]:
    """Descriptors of folders that the overlays will hide or copy; they still refer to the originals."""
    return {folder: os.open(folder, os.O_PATH | os.O_DIRECTORY) for folder in folders}


def own_sysfs() -> None:
    """Mount a sysfs with the node's own devices; the host's mounts below /sys, such as cgroups, are kept."""
    below = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    real = keep_visible([path for path in below if path.startswith("/sys/") and Path(path).is_dir()])
    mount("sysfs", "/sys", "sysfs")
    for path, fd in real.items():
        if Path(path).is_dir():
            mount(f"/proc/self/fd/{fd}", path, flags=_MS_BIND)
        os.close(fd)


def untouched_proc(place: Path) -> None:
    """Mount a /proc that nothing covers: without one the kernel lets no container in a user namespace mount its own."""
    place.mkdir(exist_ok=True)
    mount("proc", str(place), "proc")


def bind(source: str, target: str) -> None:
    """Bind-mount a folder or file, with the mounts below it."""
    mount(source, target, flags=_MS_BIND | _MS_REC)


def build(spec: dict[str, object]) -> None:
    """Build the node's file system from the spec."""
    own = Path(str(spec["own"]))
    mount("none", "/", flags=_MS_REC | _MS_PRIVATE)
    real = keep_visible(_texts(spec["visible"]))
    for folder in _texts(spec["copied"]):
        copy_on_write(folder, own, _texts(spec["hidden"]))
    for folder, fd in real.items():
        Path(folder).mkdir(parents=True, exist_ok=True)
        bind(f"/proc/self/fd/{fd}", folder)
        os.close(fd)
    for folder in _texts(spec["on_disk"]):
        source = own / "disk" / folder.strip("/")
        source.mkdir(parents=True, exist_ok=True)
        Path(folder).mkdir(parents=True, exist_ok=True)
        bind(str(source), folder)
    mount("proc", "/proc", "proc")
    own_sysfs()
    untouched_proc(own / "proc")
    for name in _texts(spec["own_sysctls"]):
        _own_sysctl(Path("/proc/sys", name), own / "sysctl" / name.replace("/", "."))
    mount("none", "/", flags=_MS_REC | _MS_SHARED)  # kubelet propagates mounts to containers


def _own_sysctl(real: Path, copy: Path) -> None:
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(real.read_text())
    bind(str(copy), str(real))


def _texts(value: object) -> list[str]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    return [str(item) for item in value]


def own_cgroups(name: str) -> None:
    """For a PID 1 that manages cgroups: start it in one of the node's own cgroups, which it takes for the root.

    Version 1 cgroups are in a tmpfs in which systemd creates and mounts what is missing, and which it makes read-only.
    So it gets its own tmpfs, with the machine's hierarchies, and is told that there are no others.
    """
    top = Path("/sys/fs/cgroup")
    is_v2 = (top / "cgroup.controllers").exists()
    mounted = [top] if is_v2 else [each for each in top.iterdir() if each.is_dir() and each.name != "unified"]
    real = keep_visible([str(each) for each in mounted])
    for each in mounted:
        (each / name.strip("/") / "cgroup.procs").write_text("0")
    if is_v2:
        return
    mount("tmpfs", str(top), "tmpfs")
    for folder, fd in real.items():
        Path(folder).mkdir()
        mount(f"/proc/self/fd/{fd}", folder, flags=_MS_BIND)
        os.close(fd)
    mount("/dev/null", "/proc/cgroups", flags=_MS_BIND)


def main() -> None:
    """Build the node, create the file `ready`, and wait."""
    spec = json.loads(Path(sys.argv[1]).read_text())
    build(spec)
    socket.sethostname(spec["name"])
    if init := _texts(spec["init"]):
        own_cgroups(spec["cgroup"])
        Path(spec["own"], "ready").touch()
        os.execve(init[0], init, {"container": "rig", **os.environ})  # noqa: S606  it needs no shell
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps orphans
    Path(spec["own"], "ready").touch()
    while True:
        signal.pause()


if __name__ == "__main__":
    main()
