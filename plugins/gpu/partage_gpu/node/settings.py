"""Settings of the GPU node plugin alone: two environment variables of crishim, read once at its start.

A plugin has no constructor arguments and shares its daemon's environment, so its settings are variables instead of a
table in the daemon's file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Way = Literal["cdi", "nvidia-cdi", "nvidia-env", "raw"]
"""How a card gets into a container: by our CDI kind, by NVIDIA's, by environment for NVIDIA's runtime, or by hand."""
_WAYS: Final[Mapping[str, Way | None]] = {
    "auto": None,
    "cdi": "cdi",
    "nvidia-cdi": "nvidia-cdi",
    "nvidia-env": "nvidia-env",
    "raw": "raw",
}

ATTACH: Final = "PARTAGE_GPU_ATTACH"
CAPABILITIES: Final = "PARTAGE_GPU_CAPABILITIES"
DRIVER_ROOT: Final = "PARTAGE_DRIVER_ROOT"
"""A setting of all daemons, which pass it to their plugins; named here for messages."""

KNOWN_CAPABILITIES: Final = ("all", "compat32", "compute", "display", "graphics", "ngx", "utility", "video")
"""NVIDIA's runtime refuses to start a container that names any other."""
DEFAULT_CAPABILITIES: Final = ("compute", "utility")
"""Default of NVIDIA's runtime if neither pod nor image names any; also ours for the way `raw`."""


@dataclass(frozen=True)
class GpuSettings:
    attach: Way | None = None
    """None: chosen for each container (`way_for`)."""
    capabilities: tuple[str, ...] = ()
    """For containers that name none; if empty, the image decides, then the default."""


def settings_from(environment: Mapping[str, str]) -> GpuSettings:
    """Reads the settings; raises one `ValueError` with all mistakes."""
    attach, listed = environment.get(ATTACH, "auto"), environment.get(CAPABILITIES, "").split(",")
    capabilities = tuple(dict.fromkeys(part.strip() for part in listed if part.strip()))
    mistakes = [] if attach in _WAYS else [f"{ATTACH} is {attach!r:.80}; allowed: one of {', '.join(_WAYS)}"]
    mistakes += [
        f"{CAPABILITIES} has {name!r:.80}; allowed: a list of {', '.join(KNOWN_CAPABILITIES)}"
        for name in capabilities
        if name not in KNOWN_CAPABILITIES
    ]
    if mistakes:
        raise ValueError("; ".join(mistakes))
    return GpuSettings(attach=_WAYS[attach], capabilities=capabilities)
