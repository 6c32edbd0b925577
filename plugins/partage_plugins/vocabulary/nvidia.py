"""How a container asks NVIDIA's runtime for cards by itself: one list, for the guard and for who attaches cards.

NVIDIA's runtime compares beginnings of paths and keys, not their components, so these are beginnings.
"""

from __future__ import annotations

from typing import Final

VISIBLE: Final = "NVIDIA_VISIBLE_DEVICES"
VOID: Final = "void"
"""As its value: add nothing."""
MIG_VARIABLES: Final = frozenset(("NVIDIA_MIG_CONFIG_DEVICES", "NVIDIA_MIG_MONITOR_DEVICES"))
"""Variables that open the configuration of cards."""
ANNOTATIONS: Final = ("cdi.k8s.io/", "nvidia.cdi.k8s.io/")
"""Beginnings of keys. Runtimes read them on the container; a runtime can be set to hand on those of the pod as well."""
MOUNTED: Final = "/var/run/nvidia-container-devices"
"""A mount at a path that begins so asks for what the rest names, where the runtime is set to read mounts."""
CHANNELS: Final = "imex/"
"""The rest begins so: a channel between machines, and no card."""
HANDLERS: Final = frozenset(("nvidia", "nvidia-cdi", "nvidia-legacy"))
"""Usual names of runtime handlers that run NVIDIA's runtime."""
PROGRAM: Final = "nvidia-container-runtime"
"""The name of NVIDIA's runtime begins so."""


def is_nvidias(program: str) -> bool:
    """Whether a runtime's program is NVIDIA's."""
    return program.rpartition("/")[2].startswith(PROGRAM)


def mounted_name(path: str) -> str | None:
    """What a mount at this clean path names to NVIDIA's runtime; None for a path that it does not read."""
    return path.removeprefix(MOUNTED).strip("/") if path.startswith(MOUNTED) else None
