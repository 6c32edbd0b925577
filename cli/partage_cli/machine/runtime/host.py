"""What a pod finds on the machine: folders of its volumes and logs, and the name servers. Made before, taken after.

All of it may be made any number of times. What is there and is of another kind is refused and never replaced.
"""

from __future__ import annotations

import ipaddress
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_cli.machine.pods.pod import HostPath, Pod
from partage_cli.machine.runtime.plans import Dns, SandboxPlan, memory_folder, volume_source, volumes_folder
from partage_plugins.errors import Refused

_RESOLV: Final = "etc/resolv.conf"
_RESOLVED: Final = "run/systemd/resolve/resolv.conf"
_MOST_SERVERS: Final = 3
_KINDS: Final[dict[str, tuple[str, Callable[[int], bool]]]] = {
    "Directory": ("folder", stat.S_ISDIR),
    "DirectoryOrCreate": ("folder", stat.S_ISDIR),
    "File": ("file", stat.S_ISREG),
    "FileOrCreate": ("file", stat.S_ISREG),
    "Socket": ("socket", stat.S_ISSOCK),
    "CharDevice": ("character device", stat.S_ISCHR),
    "BlockDevice": ("block device", stat.S_ISBLK),
}


def prepare(pod: Pod, sandbox: SandboxPlan) -> None:
    """Makes what the pod mounts, and where it logs to; raises `Refused` or `OSError`."""
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        (Path(sandbox.log_folder) / container.name).mkdir(parents=True, exist_ok=True)
    for volume in pod.spec.volumes:
        source = Path(volume_source(volume, uid=sandbox.uid, root=sandbox.premises.root))
        if volume.host_path is not None:
            _make_host_path(volume.name, volume.host_path)
        else:
            _make_own(source.parent)
            source.mkdir(exist_ok=True)
            source.chmod(0o777)  # of the pod's containers, whoever they run as; the folder above is closed


def clear(uid: str, *, root: str = "/", logs: str | None = None) -> None:
    """Takes away the pod's own volumes, and its logs where they are named."""
    for folder in (volumes_folder(uid, root), memory_folder(uid), logs):
        if folder is not None and os.path.lexists(folder):
            shutil.rmtree(folder)


def dns(root: Path) -> Dns:
    """For pods with a network of their own, where a server on the machine's loopback can't be reached."""
    for name in (_RESOLV, _RESOLVED):
        try:
            found = resolv_conf((root / name).read_text(errors="replace"))
        except OSError:
            continue
        if found.servers:
            return found
    return Dns()


def resolv_conf(text: str) -> Dns:
    """What a resolv.conf says, without servers on the loopback."""
    servers: list[str] = []
    searches: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    for line in text.splitlines():
        match line.split():
            case ["nameserver", server, *_] if not _is_loopback(server):
                servers.append(server)
            case ["search" | "domain", *names]:
                searches = tuple(names)
            case ["options", *said]:
                options += tuple(said)
            case _:
                pass
    return Dns(servers=tuple(servers[:_MOST_SERVERS]), searches=searches, options=options)


def _is_loopback(server: str) -> bool:
    try:
        return ipaddress.ip_address(server.partition("%")[0]).is_loopback
    except ValueError:
        return True


def _make_own(folder: Path) -> None:
    """A folder that is root's: in memory, any user could have made one of that name before."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o711)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Refused(f"{folder} is not a folder of ours: remove it")


def _make_host_path(volume: str, wanted: HostPath) -> None:
    path = Path(wanted.path)
    if wanted.type == "DirectoryOrCreate" or (not wanted.type and not os.path.lexists(path)):
        path.mkdir(parents=True, exist_ok=True)
    elif wanted.type == "FileOrCreate" and not os.path.lexists(path):
        path.touch(mode=0o644)
    if not wanted.type:
        return
    if wanted.type not in _KINDS:
        raise Refused(f"volume {volume}: hostPath type {wanted.type!r} is none of {', '.join(_KINDS)}")
    kind, is_kind = _KINDS[wanted.type]
    try:
        found = path.stat()
    except OSError as error:
        raise Refused(f"volume {volume}: {path} should be a {kind}: {error.strerror}") from None
    if not is_kind(found.st_mode):
        raise Refused(f"volume {volume}: {path} is there and is no {kind}")
