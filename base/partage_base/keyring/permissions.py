"""Who may own, read and write key files. Pure: decides from the result of `stat`.

*Owner*, of everything: our user, root, or the user `partage` that the daemons run as.

*A private file* has mode 0600 or 0400, or 0640 or 0440 if its group is ours: our primary group, or the group named
`partage`. For files of root any group of our process counts as well: kubelet mounts a Secret as root's, and with
`fsGroup` gives it 0440 and a group that the process has only as a supplementary one. On a file of our own such a group,
for instance `users`, would be a mistake.

*A public file* may be read by all and written by its owner alone: a user who can write it can sign.

*A folder* may be written by its owner alone, with two exceptions that Kubernetes needs: it is sticky (a Secret is
mounted with 1777; others can add files there, but those have a wrong owner) or mounted read-only (a ConfigMap is
mounted with 0777).

Modes are checked, not whether opening succeeds: root can open everything. A symbolic link is followed and its target
checked, as Kubernetes mounts every key as a link into `..data`.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from partage_base.keyring.errors import KeyRefused

ACCOUNT: Final = "partage"

_OWN: Final = frozenset({0o600, 0o400})
_GROUP: Final = frozenset({0o640, 0o440})
_WRITTEN_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True)
class Us:
    """The identity of this process for file permissions."""

    uid: int
    gid: int
    groups: frozenset[int] = frozenset()
    """Supplementary groups."""
    account_uid: int | None = None
    """The user named `partage`, if it exists."""
    account_gid: int | None = None
    """The group named `partage`, if it exists."""


def check_private(file: Path, status: os.stat_result, us: Us) -> None:
    """Refuses a private file that others could read or replace."""
    _check_owner(file, status, us)
    mode = stat.S_IMODE(status.st_mode)
    if mode in _OWN or (mode in _GROUP and status.st_gid in _our_groups(status, us)):
        return
    why = f"has mode {mode:04o} and group {status.st_gid}"
    raise KeyRefused(file, why, allowed=f"0600, or 0640 for our own group ({us.gid}) or the group {ACCOUNT}")


def check_public(file: Path, status: os.stat_result, us: Us) -> None:
    """Refuses a public file that others could replace."""
    _check_owner(file, status, us)
    mode = stat.S_IMODE(status.st_mode)
    if mode & _WRITTEN_BY_OTHERS:
        raise KeyRefused(file, f"has mode {mode:04o}: others can replace it", allowed="written by its owner only: 0644")


def check_folder(folder: Path, status: os.stat_result, us: Us, *, read_only: bool) -> None:
    """Refuses a folder where others could replace files."""
    _check_owner(folder, status, us)
    mode = stat.S_IMODE(status.st_mode)
    if mode & _WRITTEN_BY_OTHERS and not mode & stat.S_ISVTX and not read_only:
        why = f"has mode {mode:04o}: others can replace the keys in it"
        raise KeyRefused(folder, why, allowed="written by its owner only, sticky, or mounted read-only")


def _check_owner(file: Path, status: os.stat_result, us: Us) -> None:
    if status.st_uid not in {us.uid, 0, us.account_uid}:
        why = f"belongs to user {status.st_uid}"
        raise KeyRefused(file, why, allowed=f"us ({us.uid}), root, or the user {ACCOUNT}")


def _our_groups(status: os.stat_result, us: Us) -> frozenset[int | None]:
    ours: frozenset[int | None] = frozenset({us.gid, us.account_gid})
    return ours | us.groups if status.st_uid == 0 else ours
