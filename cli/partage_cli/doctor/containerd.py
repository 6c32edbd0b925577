"""The container runtime's configuration: default runtime, CDI, checkpoints, and NVIDIA's container runtime.

The facts come from the running runtime over CRI, as for crishim: its files may differ from what it runs with.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from partage_base.cri import RuntimeConfig
from partage_cli.doctor.findings import About, Finding
from partage_cli.doctor.local_node import LocalNode, Unseen, text_of
from partage_cli.doctor.runtimes import Runtime, config_at, runtime_at
from partage_plugins.api.nvidia import is_nvidias

NVIDIA_CONFIG: Final = "/etc/nvidia-container-runtime/config.toml"
_ENVVAR: Final = "accept-nvidia-visible-devices-envvar-when-unprivileged"


_VERSION: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})")
_RESTORED_FROM, _RESTORED_BEFORE = (2, 1), (2, 4)
"""Versions of containerd that restore checkpoints on create; the lower ones don't report it."""


class _NvidiaConfig(msgspec.Struct, frozen=True):
    believes_variables: bool = msgspec.field(name=_ENVVAR, default=True)


def container_runtime(node: LocalNode) -> Iterator[Finding]:
    """One finding if the runtime doesn't answer."""
    socket = node.path(node.crishim.runtime)
    config, runtime = config_at(socket), runtime_at(socket)
    if isinstance(config, Unseen):
        yield About("runtime-default", (str(socket),)).unknown(
            str(config), do="ask again as root; if the runtime runs, `runtime` under [crishim] names another socket"
        )
        return
    yield default_runtime(About("runtime-default", (str(socket),)), config, guarded=node.crishim.guard != "off")
    yield cdi(About("runtime-cdi", (str(socket),)), config)
    yield restore(About("runtime-restore", (str(socket),)), config, runtime)


def default_runtime(about: About, config: RuntimeConfig, *, guarded: bool) -> Finding:
    """If NVIDIA's runtime runs every pod, images can request cards, unless crishim's guard prevents it."""
    program = config.program_of("")
    if config.default_handler is None or program is None:
        return about.unknown("the runtime does not say who runs pods that name no handler; crishim assumes NVIDIA's")
    if not is_nvidias(program):
        return about.ok(f"pods that name no handler are run by {config.default_handler}, which is {program}")
    nvidias = f"{config.default_handler} is NVIDIA's and runs every pod"
    if guarded:
        return about.ok(f"{nvidias}; crishim's guard keeps them from cards that nobody gave them")
    return about.wrong(
        f"{nvidias}, and crishim's guard is off: images can take every card",
        do='take guard = "off" out of partage.toml, or change the default_runtime_name of containerd',
    )


def cdi(about: About, config: RuntimeConfig) -> Finding:
    """Whether the runtime reads CDI specs from the folder that we write to."""
    if config.cdi is None:
        return about.unknown("the runtime does not say whether CDI is on, so cards are attached by hand")
    if not config.cdi:
        return about.warning(
            "CDI is off, so cards are attached by hand or by NVIDIA's runtime, and MIG instances by the latter alone",
            do="set enable_cdi = true in containerd's configuration and restart it",
        )
    if not config.takes_our_specs:
        return about.warning(
            f"CDI is on, but in {', '.join(config.spec_folders) or 'no folder'} and not in /var/run/cdi, so cards are "
            "attached by hand",
            do="add /var/run/cdi to cdi_spec_dirs in containerd's configuration and restart it",
        )
    return about.ok("CDI is on, and the runtime looks in /var/run/cdi")


def restore(about: About, config: RuntimeConfig, runtime: Runtime | Unseen) -> Finding:
    """Whether creating a container may restore a checkpoint; such a container's cards can't be accounted for."""
    if config.restores:
        return about.wrong(
            "containerd restores checkpoints when it creates containers, whose cards can't be counted then, so crishim "
            "honours no allocation",
            do="set enable_experimental_restore_via_create = false in containerd's configuration and restart it",
        )
    if config.restores is False:
        return about.ok("containerd restores no checkpoint when it creates a container")
    version = None if isinstance(runtime, Unseen) else _VERSION.match(runtime.version)
    if isinstance(runtime, Unseen) or runtime.name != "containerd" or version is None:
        return about.unknown("the runtime does not say whether it restores checkpoints when it creates containers")
    if _RESTORED_FROM <= (int(version[1]), int(version[2])) < _RESTORED_BEFORE:
        return about.warning(
            f"{runtime} restores checkpoints when it creates containers, where CRIU is installed; crishim honours no "
            "allocation then",
            do="update containerd to 2.2.7, 2.3.4 or later, which do not, or take CRIU off this node",
        )
    return about.ok(f"{runtime} restores no checkpoint when it creates a container")


def nvidia_runtime(node: LocalNode) -> Iterator[Finding]:
    """Whether NVIDIA's runtime obeys NVIDIA_VISIBLE_DEVICES of unprivileged containers."""
    path = node.path(NVIDIA_CONFIG)
    about, text = About("runtime-variables", (str(path),)), text_of(path)
    if isinstance(text, Unseen):
        yield about.ok("NVIDIA's container runtime is not set up here") if text.is_missing else about.unknown(str(text))
        return
    try:
        believes = msgspec.toml.decode(text, type=_NvidiaConfig).believes_variables
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        yield about.unknown(f"{path}: {_first_line(error)}", do="mend it: NVIDIA's runtime fails on it, too")
        return
    yield variables(about, believes=believes, guarded=node.crishim.guard != "off")


def variables(about: About, *, believes: bool, guarded: bool) -> Finding:
    """`believes`: NVIDIA's runtime obeys the variable; `guarded`: crishim blanks it."""
    if not believes:
        return about.ok("unprivileged containers cannot ask for cards by variable")
    if guarded:
        return about.ok("unprivileged containers may ask for cards by variable; crishim's guard blanks it")
    return about.wrong(
        "unprivileged containers may ask for cards by NVIDIA_VISIBLE_DEVICES, and crishim's guard is off",
        do=f'set {_ENVVAR} = false in {about.looked_at[0]}, or take guard = "off" out of partage.toml',
    )


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or ["cannot be read"])[0][:160]
