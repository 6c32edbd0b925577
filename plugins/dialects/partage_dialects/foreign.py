"""Words of systems that have no dialect here: who uses them is told so, and no more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from partage_plugins.hooks import hookimpl
from partage_plugins.vocabulary import keys
from partage_plugins.vocabulary.words import DialectWords

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
    DialectWords(system="nos", where="limits", prefixes=("nvidia.com/gpu-",), is_read=False, remedy=IN_OURS),
)


class ForeignWords:
    @hookimpl
    def partage_words(self) -> Sequence[DialectWords]:
        return WORDS
