"""The container runtime's configuration, as it reports it: CDI, and the program of each runtime handler. Pure.

containerd puts its whole configuration, as JSON, into the verbose response to `Status`. 1.6 has no CDI and does not
mention it there. 1.7 reports `enableCDI`; from 2.0 on that may also be null, which means on. 2.4 has spec folders and
no such switch any more: CDI is always on. CRI-O responds with something else. What is not reported stays unknown.

containerd 2.1 to 2.3 can restore a container from a checkpoint on CreateContainer, if the image is one and CRIU is
installed; from 2.2.7 and 2.3.4 on it reports whether it does, and 2.4 never does. This alone is derived from a version.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

OUR_SPECS: Final = "/run/cdi"
"""Where our own CDI spec is; /var/run is a link to /run."""
_VERSION: Final = re.compile(r"v?(\d{1,4})\.(\d{1,4})\.(\d{1,4})")
_RESTORE_UNSAID: Final = (((2, 1, 0), (2, 2, 6)), ((2, 3, 0), (2, 3, 3)))
"""The first and last containerd versions that restore without reporting it."""


class RuntimeConfig(Struct, frozen=True, kw_only=True):
    """Runtime configuration; None, or a missing handler, means that the runtime does not report it."""

    cdi: bool | None = None
    spec_folders: tuple[str, ...] = ()
    """Where it looks for CDI specs."""
    default_handler: str | None = None
    """The handler of pods that name none."""
    programs: Mapping[str, str] = {}
    """The program that runs a container, by handler."""
    restores: bool | None = None
    """Whether CreateContainer may restore a checkpoint. Such a container has the checkpoint's annotations, not ours."""

    may_restore: bool = False
    """Whether it restores checkpoints without reporting it, if CRIU is installed."""

    @property
    def takes_our_specs(self) -> bool | None:
        """Whether it injects CDI devices from the folder of our spec."""
        if not self.cdi:
            return self.cdi
        return any(posixpath.normpath(each).removeprefix("/var") == OUR_SPECS for each in self.spec_folders)

    def program_of(self, handler: str) -> str | None:
        """The program of this handler's containers; an empty name means the default handler."""
        return self.programs.get(handler or self.default_handler or "")


class _Runtime(Struct, frozen=True, rename="camel"):
    runtime_type: str = ""
    runtime_path: str = ""
    options: Mapping[str, object] | None = None

    @property
    def program(self) -> str:
        """An option of runc's shim; other shims are themselves the program."""
        named = (self.options or {}).get("BinaryName")
        return named if isinstance(named, str) and named else self.runtime_path or self.runtime_type


class _Containerd(Struct, frozen=True, rename="camel"):
    default_runtime_name: str | None = None
    runtimes: Mapping[str, _Runtime] | None = None


class _Config(Struct, frozen=True):
    containerd: _Containerd = _Containerd()
    enable_cdi: bool | UnsetType | None = msgspec.field(name="enableCDI", default=UNSET)
    cdi_spec_dirs: tuple[str, ...] | UnsetType | None = msgspec.field(name="cdiSpecDirs", default=UNSET)
    restores: bool | None = msgspec.field(name="enableExperimentalRestoreViaCreate", default=None)

    @property
    def cdi(self) -> bool | None:
        if self.enable_cdi is UNSET:
            return None if self.cdi_spec_dirs is UNSET else True
        return self.enable_cdi is not False


_CONFIG: Final = msgspec.json.Decoder(_Config)


def read_config(text: bytes) -> RuntimeConfig:
    """Decodes `config` of the verbose status; everything is unknown if it is not containerd's."""
    try:
        said = _CONFIG.decode(text)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return RuntimeConfig()
    return RuntimeConfig(
        cdi=said.cdi,
        spec_folders=said.cdi_spec_dirs or (),
        default_handler=said.containerd.default_runtime_name or None,
        programs={name: each.program for name, each in (said.containerd.runtimes or {}).items()},
        restores=said.restores,
    )


def restores_unsaid(name: str, version: str) -> bool:
    """Whether a runtime of this version restores checkpoints on CreateContainer, without a switch to disable it."""
    found = _VERSION.match(version)
    if name != "containerd" or found is None:
        return False
    numbers = tuple(map(int, found.groups()))
    return any(first <= numbers <= last for first, last in _RESTORE_UNSAID)
