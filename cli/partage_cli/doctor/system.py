"""The kernel and its configuration: version, cgroups, SELinux."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, status_of, text_of

_RELEASE: Final = "proc/sys/kernel/osrelease"
_UNIFIED: Final = "sys/fs/cgroup/cgroup.controllers"
_ENFORCE: Final = "sys/fs/selinux/enforce"
_LABEL: Final = "security.selinux"
_CONTAINER_FOLDERS: Final = "run/partage/containers"
_FOR_CONTAINERS: Final = "container_file_t"


def kernel(node: LocalNode) -> Iterator[Finding]:
    """Its version and its cgroup version."""
    about = About("kernel", (str(node.path(_RELEASE)), str(node.path(_UNIFIED))))
    release = text_of(node.path(_RELEASE))
    if isinstance(release, Unseen):
        yield about.unknown(str(release))
        return
    unified = status_of(node.path(_UNIFIED))
    if isinstance(unified, Unseen):
        yield about.warning(
            f"Linux {release.strip()} with cgroups of version 1",
            do="boot with systemd.unified_cgroup_hierarchy=1; in a cluster kubelet from 1.35 needs failCgroupV1: false",
        )
    else:
        yield about.ok(f"Linux {release.strip()} with cgroups of version 2")


def selinux(node: LocalNode) -> Iterator[Finding]:
    """If SELinux enforces, containers need access to the sockets in the folder that is mounted for them."""
    path, folder = node.path(_ENFORCE), node.path(_CONTAINER_FOLDERS)
    about, enforce = About("selinux", (str(path), str(folder))), text_of(path)
    if isinstance(enforce, Unseen):
        yield about.ok("is not there") if enforce.is_missing else about.unknown(str(enforce))
    elif enforce.strip() != "1":
        yield about.ok("is permissive")
    else:
        yield enforced(about, folder, _label(folder))


def enforced(about: About, folder: Path, label: str | Unseen) -> Finding:
    """Judge the label of the folder that containers see."""
    if isinstance(label, Unseen):
        said = f"is enforced; {label}"
        return about.ok(f"is enforced; {folder} is not there yet") if label.is_missing else about.unknown(said)
    if f":{_FOR_CONTAINERS}:" in f"{label}:":
        return about.ok(f"is enforced, and {folder} is labelled for containers")
    return about.warning(
        f"is enforced, and {folder} is labelled {label}: containers may not reach the broker",
        do=f"semanage fcontext -a -t {_FOR_CONTAINERS} '{folder}(/.*)?' && restorecon -R {folder}",
    )


def _label(path: Path) -> str | Unseen:
    try:
        return os.getxattr(path, _LABEL).rstrip(b"\0").decode(errors="replace")
    except OSError as error:
        return Unseen(path, error.strerror or str(error), is_missing=isinstance(error, FileNotFoundError))
