"""Settings of the GPU allocator: environment variables of the scheduler, read once at its start."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

from partage_gpu.allocator.mix import DEFAULT, Mix, read_mix
from partage_gpu.allocator.plan import NAMESPACES, read_namespaces
from partage_gpu.allocator.shapes import Typical
from partage_plugins.api.names import Namespace
from partage_plugins.errors import Refused

POLICY: Final = "PARTAGE_GPU_POLICY"
TAGS: Final = "PARTAGE_GPU_TAGS"
_GLOBAL: Final[Mapping[str, bool]] = {"namespace": False, "global": True}
T = TypeVar("T")


@dataclass(frozen=True)
class AllocatorSettings:
    mix: Mix = field(default_factory=partial(read_mix, DEFAULT))
    """For pods that name no policy."""
    exclusion_namespaces: frozenset[Namespace] = frozenset()
    """Namespaces whose pods may keep others off a card of which they have a part; `EVERY_NAMESPACE` among them means
    all."""
    global_tags: bool = False
    """Whether equal tags of pods in different namespaces are the same tag."""
    shapes: Typical | None = None
    """Typical shapes of pods; None: learnt."""


def settings_from(environment: Mapping[str, str]) -> AllocatorSettings:
    """Reads the settings; raises a `ValueError` that names an invalid one."""
    return AllocatorSettings(
        mix=_read(environment, POLICY, DEFAULT, read_mix),
        exclusion_namespaces=_read(environment, NAMESPACES, "", read_namespaces),
        global_tags=_read(environment, TAGS, "namespace", _read_scope),
    )


def _read_scope(text: str) -> bool:
    if text not in _GLOBAL:
        raise Refused(f"{text!r} is no scope of tags; allowed: {', '.join(_GLOBAL)}")
    return _GLOBAL[text]


def _read(environment: Mapping[str, str], name: str, default: str, read: Callable[[str], T]) -> T:
    try:
        return read(environment.get(name, default))
    except Refused as error:
        raise ValueError(f"{name}: {error}") from None
