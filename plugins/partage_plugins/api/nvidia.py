"""The ways in which a container requests cards from NVIDIA's runtime directly: one list for filtering and attaching.

NVIDIA's runtime compares string prefixes of paths and keys rather than their components, so these are prefixes.
"""

from __future__ import annotations

from typing import Final

VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
VOID: Final = "void"
"""Value that adds nothing."""
MIG_VARIABLES: Final = frozenset(("NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES"))
"""Variables that give access to the configuration of cards."""
ANNOTATIONS: Final = ("cdi.k8s.io/", "nvidia.cdi.k8s.io/")
"""Prefixes of keys. Runtimes read them on the container; a runtime can be configured to pass on the pod's as well."""
MOUNTED: Final = "/var/run/nvidia-container-devices"
"""Prefix of mount paths that request the devices named after it, if the runtime is configured to read mounts."""
CHANNELS: Final = "imex/"
"""Prefix of such a name for a channel between machines instead of a card."""
HANDLERS: Final = frozenset(("nvidia", "nvidia-cdi", "nvidia-legacy"))
"""Usual names of runtime handlers that run NVIDIA's runtime."""
PROGRAM: Final = "nvidia-container-runtime"
"""Prefix of the name of NVIDIA's runtime program."""


def is_nvidias(program: str) -> bool:
    """Whether a runtime's program is NVIDIA's."""
    return program.rpartition("/")[2].startswith(PROGRAM)


def mounted_name(path: str) -> str | None:
    """The device that a mount at this normalized path names to NVIDIA's runtime; None for a path that it ignores."""
    return path.removeprefix(MOUNTED).strip("/") if path.startswith(MOUNTED) else None
