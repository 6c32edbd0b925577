"""Keys of systems without a dialect here, or with a disabled one: pods that use them get an event, and nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec.structs import replace

from partage_dialects.hami import HamiDialect
from partage_dialects.kai import KaiDialect
from partage_dialects.kubegpu import KubeGpu
from partage_dialects.kubeshare_v1 import KubeShareV1
from partage_dialects.kubeshare_v2 import KubeShareV2
from partage_dialects.volcano import VolcanoDialect
from partage_dialects.whole import WholeCards
from partage_plugins.api import keys
from partage_plugins.api.words import DialectWords
from partage_plugins.hooks import hookimpl
from partage_plugins.registry.entry_points import blocked_names


class Dialect(Protocol):
    def partage_words(self) -> Sequence[DialectWords]: ...


IN_OURS: Final = f"Ask for {keys.GPU_MILLI} and {keys.GPU_MEMORY} in a container's limits instead"
WORDS: Final = (
    DialectWords(
        system="Aliyun gpushare",
        where="limits",
        asking=frozenset(("aliyun.com/gpu-mem", "aliyun.com/gpu-count")),
        prefixes=("aliyun.com/gpu", "ALIYUN_COM_GPU_"),
        is_read=False,
        remedy=IN_OURS,
    ),
    DialectWords(
        system="tkestack's gpu-manager",
        where="limits",
        asking=frozenset(("tencent.com/vcuda-core", "tencent.com/vcuda-memory")),
        beside=frozenset(("tencent.com/vcuda-core-limit",)),
        prefixes=("tencent.com/vcuda-",),
        is_read=False,
        remedy=IN_OURS,
    ),
    DialectWords(
        system="Koordinator",
        where="limits",
        asking=frozenset(
            f"koordinator.sh/{each}" for each in ("gpu", "gpu.shared", "gpu-core", "gpu-memory", "gpu-memory-ratio")
        ),
        prefixes=("koordinator.sh/gpu", "scheduling.koordinator.sh/device-", "scheduling.koordinator.sh/gpu-"),
        is_read=False,
        remedy=IN_OURS,
    ),
    DialectWords(
        system="vgpu-manager",
        where="limits",
        asking=frozenset(f"nvidia.com/vgpu-{each}" for each in ("number", "cores", "memory")),
        prefixes=("nvidia.com/vgpu-",),
        is_read=False,
        remedy=IN_OURS,
    ),
    DialectWords(system="nos", where="limits", families=("nvidia.com/gpu-",), is_read=False, remedy=IN_OURS),
    DialectWords(
        system="NVIDIA's device plugin",
        where="limits",
        asking=frozenset(("nvidia.com/gpu.shared",)),
        families=("nvidia.com/mig-",),
        is_read=False,
        remedy=f"Only a device plugin on a node gives these. {IN_OURS}",
    ),
)


DIALECTS: Final[Mapping[str, Callable[[], Dialect]]] = {
    "hami-dialect": HamiDialect,
    "kai-dialect": KaiDialect,
    "kubegpu-dialect": KubeGpu,
    "kubeshare-v1-dialect": KubeShareV1,
    "kubeshare-v2-dialect": KubeShareV2,
    "volcano-dialect": VolcanoDialect,
    "whole-dialect": WholeCards,
}
"""By the plugin names with which they are disabled."""


class ForeignWords:
    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        off = [name for name in DIALECTS if name in blocked_names(os.environ)]
        return (*WORDS, *(_unread(name, words) for name in off for words in DIALECTS[name]().partage_words()))


def _unread(dialect: str, words: DialectWords) -> DialectWords:
    return replace(words, is_read=False, remedy=f"The operator switched {dialect} off. {IN_OURS}")
