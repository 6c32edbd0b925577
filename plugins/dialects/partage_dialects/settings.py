"""What can be set of dialects: environment variables of the scheduler, read once at its start.

Plugins are made without arguments and share their daemon's environment, so what concerns several of them are
variables, read by this one function. A dialect as a whole is switched off as any plugin is: `PARTAGE_PLUGINS_BLOCK`.
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
    """Whose word `nvidia.com/gpu` is: kubelet's device plugin, the dialect of whole cards, or HAMi's."""


def settings_from(environment: Mapping[str, str]) -> DialectSettings:
    """The settings, or a `ValueError` with what is wrong in them."""
    said = environment.get(NVIDIA_GPU, "kubelet")
    reader = _READERS.get(said)
    if reader is None:
        raise ValueError(f"{NVIDIA_GPU} is {said!r}; allowed: {', '.join(_READERS)}")
    return DialectSettings(nvidia_gpu=reader)
