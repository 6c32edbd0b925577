"""Takes back all that `partage up` made on a machine without pods; each step may find its work done already.

What lies below our own folders goes with them. What others may use too goes only where nothing of theirs is left in it.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from partage_base.keyring import KeyFolders, overview
from partage_base.keyring.layout import MARKER
from partage_cli.machine.places import BRIDGE, MACHINE_FILE, REGISTRIES, STATE
from partage_cli.machine.setup.decision import Decision
from partage_cli.machine.setup.packet_rules import removals
from partage_cli.machine.setup.services import PATH
from partage_dra.spec_file import SpecFiles
from partage_gpu.node.nvidia_specs import FOLDERS as CDI_FOLDERS
from partage_gpu.node.nvidia_specs import OUR_FILE
from partage_plugins.vocabulary import KeyId

Say = Callable[[str], None]
_RUN: Final = "run/partage"
_OF_ANY_CONTAINERD: Final = (
    "run/containerd/s",
    "run/containerd",
    "run/netns",
    "var/lib/cni/results",
    "var/lib/cni",
)
"""Sockets of shims, namespaces of sandboxes, and what CNI answered for them."""
_TABLES: Final = ("nat", "filter")
_SHOWN: Final = 300


def remove_all(root: Path, decision: Decision | None, say: Say) -> None:
    """Says what it leaves, and why."""
    _unmount(root, say)
    _remove_bridge(say)
    _remove_rules(say)
    for name in (STATE, _RUN):
        if (root / name).exists():
            shutil.rmtree(root / name)
    if decision is not None:
        _remove_keys(root, decision)
    (root / MACHINE_FILE).unlink(missing_ok=True)
    _remove_specs(root)
    folders = KeyFolders.at_root(root)
    empty = (
        *_OF_ANY_CONTAINERD,
        REGISTRIES,
        folders.public,
        folders.private,
        Path(MACHINE_FILE).parent,
        Path(STATE).parent,
    )
    for each in empty:
        with contextlib.suppress(OSError):  # it is not empty, or not there
            (root / each).rmdir()
    _remove_groups()
    left = [f"Debian's packages {', '.join(decision.installed)}"] if decision and decision.installed else []
    if (root / "etc/partage").exists():
        left.append(f"{root / 'etc/partage'}, with keys or settings that `partage up` did not make")
    say(f"left: {'; '.join(['the setting net.ipv4.ip_forward', *left])}")


def _unmount(root: Path, say: Say) -> None:
    """What a killed containerd left mounted; the last mount first."""
    ours = tuple(f"{root / name}/" for name in (STATE, _RUN))
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    for line in reversed(lines):
        target = line.split()[4].encode().decode("unicode_escape")
        if target.startswith(ours):
            _told(say, "umount", "--lazy", target)


def _remove_bridge(say: Say) -> None:
    if Path("/sys/class/net", BRIDGE).exists():
        _told(say, "ip", "link", "delete", BRIDGE)


def _remove_rules(say: Say) -> None:
    if shutil.which("iptables", path=PATH) is None:
        return
    for table in _TABLES:
        listing = _told(say, "iptables", "-w", "-t", table, "-S")
        for words in removals(listing):
            _told(say, "iptables", "-w", "-t", table, *words)


def _remove_groups() -> None:
    """Of processes, which containers were in: those that are empty."""
    for top in (Path("/sys/fs/cgroup/k8s.io"), *Path("/sys/fs/cgroup").glob("*/k8s.io")):
        for folder, _, _ in os.walk(top, topdown=False):
            with contextlib.suppress(OSError):  # a process is in it
                Path(folder).rmdir()


def _remove_specs(root: Path) -> None:
    """Of our CDI kinds: cards, and grants."""
    spec = root / CDI_FOLDERS[0] / OUR_FILE
    spec.unlink(missing_ok=True)
    SpecFiles(root).keep_only(())
    with contextlib.suppress(OSError):  # others' specs are there, or none ever was
        spec.parent.rmdir()


def _remove_keys(root: Path, decision: Decision) -> None:
    folders = KeyFolders.at_root(root)
    signing = overview(folders).signing
    for made in decision.made_keys:
        if signing == made:
            (folders.private / MARKER).unlink(missing_ok=True)
        folders.private_file(KeyId(made)).unlink(missing_ok=True)
        folders.public_file(KeyId(made)).unlink(missing_ok=True)


def _told(say: Say, *argv: str) -> str:
    """What it prints; a failure is said, and what it was for is left."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603  the system's own
    except OSError as error:
        say(f"left as it is: `{' '.join(argv)}` cannot run: {error.strerror}")
        return ""
    if done.returncode:
        say(f"left as it is: `{' '.join(argv)}` failed: {done.stderr.strip()[-_SHOWN:]}")
        return ""
    return done.stdout
