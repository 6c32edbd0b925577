"""Which plugins decide in a replay: those that are installed, with the GPU allocator set to one policy.

It is told what pods are typical instead of learning it, as in the published experiments, so that the first pod of a
replay is placed as well as the last.
"""

from __future__ import annotations

import dataclasses
import os
from functools import partial
from typing import Final

from partage_gpu.allocator import AllocatorSettings, GpuAllocator
from partage_gpu.allocator.mix import read_mix
from partage_gpu.allocator.plan import EVERY_NAMESPACE
from partage_gpu.allocator.settings import settings_from
from partage_gpu.allocator.shapes import Typical
from partage_plugins.hooks import scheduler as hooks
from partage_plugins.registry.entry_points import Candidate, blocked_names, installed
from partage_plugins.registry.registry import Registry
from partage_plugins.sides.scheduler import SchedulerSide
from partage_plugins.vocabulary import PluginName
from partage_scheduler.core import decider_over
from partage_scheduler.decision import Decider

GROUP: Final = "partage.scheduler"
_EVERY: Final = frozenset((EVERY_NAMESPACE,))
"""What is replayed was placed once: which namespaces may exclude others is the cluster's business."""
ALLOCATOR: Final = PluginName("gpu")
"""The name of the plugin that has the policies."""
DEFAULT: Final = ("binpack", "spread", "kubeshare", "fgd", "fgd+")
"""Those that are worth comparing on any workload; links between cards are rarely known."""


def decider_with(policy: str, typical: Typical | None = None) -> tuple[Decider, SchedulerSide]:
    """A decider whose cards this policy hands out, and what reads requests; `Refused` where there is no such policy."""
    settings = AllocatorSettings(mix=read_mix(policy), exclusion_namespaces=_EVERY, shapes=typical)
    registry = Registry(hooks)
    report = registry.load(_candidates(settings), blocked_names(os.environ) - {ALLOCATOR})
    if report.faults:
        raise report.faults[0]
    return decider_over(registry)


def _candidates(settings: AllocatorSettings) -> list[Candidate]:
    others = [candidate for candidate in installed(GROUP) if candidate.name != ALLOCATOR]
    return [Candidate(ALLOCATOR, "the replay", partial(_set_to, settings)), *others]


def _set_to(settings: AllocatorSettings) -> type[GpuAllocator]:
    """Plugins are classes without arguments."""

    class Replaying(GpuAllocator):
        def __init__(self) -> None:
            super().__init__(dataclasses.replace(settings, global_tags=settings_from(os.environ).global_tags))

    return Replaying
