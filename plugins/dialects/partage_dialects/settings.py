"""Settings of dialects: environment variables of the scheduler, read once at its start.

Plugins have no constructor arguments and share their daemon's environment, so settings of several dialects are
variables, read by this one function. A dialect is disabled like any plugin: by `PARTAGE_PLUGINS_BLOCK`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

NVIDIA_GPU: Final = "PARTAGE_NVIDIA_GPU"
NvidiaGpu: TypeAlias = Literal["kubelet", "whole", "hami"]
_READERS: Final[Mapping[str, NvidiaGpu]] = {"kubelet": "kubelet", "whole": "whole", "hami": "hami"}


@dataclass(frozen=True)
class DialectSettings:
    nvidia_gpu: NvidiaGpu = "kubelet"
    """Which reader `nvidia.com/gpu` is for: kubelet's device plugin, the dialect of whole cards, or HAMi's."""


def settings_from(environment: Mapping[str, str]) -> DialectSettings:
    """Reads the settings; raises a `ValueError` that names an invalid one."""
    said = environment.get(NVIDIA_GPU, "kubelet")
    reader = _READERS.get(said)
    if reader is None:
        raise ValueError(f"{NVIDIA_GPU} is {said!r}; allowed: {', '.join(_READERS)}")
    return DialectSettings(nvidia_gpu=reader)
