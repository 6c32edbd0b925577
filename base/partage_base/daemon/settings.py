"""What a daemon's settings are, and the ones that all daemons take.

A daemon declares one frozen type, once; flags, variables, the file, ``--help`` and ``--print-config`` are made from it:

    class CrishimSettings(CommonSettings, frozen=True, kw_only=True):
        listen: Annotated[Path, Setting("Socket that kubelet is pointed to.")] = Path("/run/partage/crishim.sock")
        connect_s: Annotated[float, Meta(gt=0), Setting("Seconds to wait for containerd.")] = 2.0

A field is a str, int, float, bool, Path, Literal of texts, a tuple[T, ...] of these, or one of them or None; it has a
default and a `Setting`. `msgspec.Meta` narrows it. What depends on two fields is checked in ``__post_init__``, which
raises ValueError with a sentence. A unit stands in the name (``_s``, ``_bytes``, ``_milli``).
"""

import os
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

LogLevel = Literal["debug", "info", "warning", "error"]
LogFormat = Literal["json", "text"]

_HOST: Final = r"(\[[0-9A-Fa-f:.]+\]|[^:\[\]\s]+)"
_PORT: Final = r"(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[0-9]{1,4})"
ADDRESS: Final = rf"^({_HOST}:{_PORT})?$"
"""`host:port`, or empty."""


class Setting(msgspec.Struct, frozen=True):
    """What people are told about one setting."""

    sentence: str  # what it is, its unit, and why the default is what it is
    allowed: str = ""  # in words, where the type and its Meta would not say it well
    stays_below: bool = False  # a path that must lead nowhere else than below the root that it is put under


def host_name() -> str:
    """The host's name as kubelet takes it for the node's."""
    return os.uname().nodename.strip().lower()


class CommonSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What all daemons take; in the file these may also stand under ``[common]``."""

    node_name: Annotated[
        str,
        Meta(min_length=1, max_length=253),
        Setting("Name of this node in the cluster; by default the host's in lower case, as kubelet has it."),
    ] = msgspec.field(default_factory=host_name)
    root: Annotated[
        Path,
        Setting("Folder that all node paths are below; another than / makes a node inside a folder."),
    ] = Path("/")
    driver_root: Annotated[
        Path,
        Setting(
            "Where NVIDIA's driver is installed, below the root; /run/nvidia/driver for a driver in a container.",
            allowed="an absolute path without ..",
            stays_below=True,
        ),
    ] = Path("/")
    log_level: Annotated[
        LogLevel,
        Setting("Least level that is logged; info says once what changed, debug every request."),
    ] = "info"
    log_format: Annotated[
        LogFormat,
        Setting("json is one object a line, for machines; text is for eyes."),
    ] = "json"
    metrics_address: Annotated[
        str,
        Meta(pattern=ADDRESS),
        Setting(
            "Where /metrics, /healthz and /readyz are served; empty, the default, is off: no port is open unasked.",
            allowed="host:port, [IPv6 address]:port, or empty for off",
        ),
    ] = ""
    stop_deadline_s: Annotated[
        float,
        Meta(gt=0, le=3600),
        Setting("Seconds a stop may take before the process ends itself; below the 30 s after which others kill it."),
    ] = 20.0

    def below_root(self, path: Path) -> Path:
        """Where `path` of the node lies under this root."""
        return self.root / path.relative_to(path.anchor)
