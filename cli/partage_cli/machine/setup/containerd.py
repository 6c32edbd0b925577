"""The configuration of our own containerd. Pure.

Version 2 of the format, which every containerd from 1.5 on reads. What is not said is containerd's default, but for
all paths: nothing of ours lies where another containerd or Docker keeps its own.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from partage_cli.machine.places import (
    CONTAINERD_ROOT,
    CONTAINERD_SOCKET,
    CONTAINERD_STATE,
    NETWORKS,
    REGISTRIES,
    RUNC_ROOT,
    STATE,
)
from partage_cli.machine.setup.decision import Programs

PAUSE_IMAGE: Final = "partage.dev/pause:1"
_UNUSED: Final = tuple(f"io.containerd.snapshotter.v1.{each}" for each in ("aufs", "btrfs", "devmapper", "zfs"))
"""Each would say that it is not configured."""


_VERSION: Final = re.compile(r"containerd \S+ v?([0-9]+)\.([0-9]+)\b", re.ASCII)
_FIRST_WITH_CDI: Final = (1, 7)


class Machine(Struct, frozen=True, kw_only=True):
    """What the machine lets containers do."""

    has_apparmor: bool
    may_lower_oom_score: bool
    attaches_by_cdi: bool = False


def chosen_attach(*, simulated: bool, version: str, has_spec: bool) -> Literal["raw", "auto"]:
    """By what `containerd --version` says; one that is not understood is taken for an old one."""
    found = _VERSION.match(version)
    knows_cdi = found is not None and (int(found[1]), int(found[2])) >= _FIRST_WITH_CDI
    return "auto" if knows_cdi and has_spec and not simulated else "raw"


def config(root: Path, programs: Programs, machine: Machine) -> str:
    cri = "io.containerd.grpc.v1.cri"
    return f"""\
# Written by `partage up`.
version = 2
disabled_plugins = [{", ".join(map(_toml, _UNUSED))}]
root = {_toml(root / CONTAINERD_ROOT)}
state = {_toml(root / CONTAINERD_STATE)}

[grpc]
address = {_toml(root / CONTAINERD_SOCKET)}

[plugins."io.containerd.internal.v1.opt"]
path = {_toml(root / STATE / "opt")}

[plugins."io.containerd.nri.v1.nri"]
disable = true

[plugins."{cri}"]
sandbox_image = {_toml(PAUSE_IMAGE)}
stream_server_address = "127.0.0.1"
stream_server_port = "0"
disable_apparmor = {_toml(not machine.has_apparmor)}
restrict_oom_score_adj = {_toml(not machine.may_lower_oom_score)}
{"enable_cdi = true" if machine.attaches_by_cdi else ""}

[plugins."{cri}".cni]
bin_dir = {_toml(programs.cni)}
conf_dir = {_toml(root / NETWORKS)}

[plugins."{cri}".containerd]
snapshotter = "overlayfs"
default_runtime_name = "runc"

[plugins."{cri}".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."{cri}".containerd.runtimes.runc.options]
BinaryName = {_toml(programs.runc)}
Root = {_toml(root / RUNC_ROOT)}
SystemdCgroup = false

[plugins."{cri}".registry]
config_path = {_toml(root / REGISTRIES)}
"""


def _toml(value: object) -> str:
    """JSON's texts and truths are TOML's."""
    return msgspec.json.encode(str(value) if isinstance(value, Path) else value).decode()
