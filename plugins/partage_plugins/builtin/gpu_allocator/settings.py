"""What can be set of the GPU allocator: environment variables of the scheduler, read once at its start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from partage_plugins.builtin.gpu_allocator.mixing import DEFAULT, Mix, read_mix
from partage_plugins.builtin.gpu_allocator.shapes import Typical
from partage_plugins.errors import Refused

POLICY: Final = "PARTAGE_GPU_POLICY"


@dataclass(frozen=True)
class AllocatorSettings:
    """All settings, checked."""

    mix: Mix = field(default_factory=partial(read_mix, DEFAULT))
    """For pods that name no policy."""
    shapes: Typical | None = None
    """Typical shapes of pods; None: learnt."""


def settings_from(environment: Mapping[str, str]) -> AllocatorSettings:
    """The settings, or a `ValueError` with what is wrong in them."""
    try:
        return AllocatorSettings(mix=read_mix(environment.get(POLICY, DEFAULT)))
    except Refused as error:
        raise ValueError(f"{POLICY}: {error}") from None
