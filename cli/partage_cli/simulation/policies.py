"""The plugins that decide in a replay: the installed ones, with the GPU allocator set to one policy.

The allocator gets the typical shapes instead of learning them, as in the published experiments, so that the first pod
of a replay is placed as well as the last.
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
from partage_plugins.api import PluginName
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_plugins.hooks import scheduler as hooks
from partage_plugins.registry.entry_points import Candidate, blocked_names, installed
from partage_plugins.registry.registry import Registry
from partage_scheduler.core import decider_over
from partage_scheduler.decision import Decider

GROUP: Final = "partage.scheduler"
_EVERY: Final = frozenset((EVERY_NAMESPACE,))
"""All pods were admitted once already: which namespaces may use exclusions is up to the cluster."""
ALLOCATOR: Final = PluginName("gpu")
"""The plugin that implements the policies."""
DEFAULT: Final = ("binpack", "spread", "kubeshare", "fgd", "fgd+")
"""Policies worth comparing on any workload; the others need links between cards, which are rarely known."""


def decider_with(policy: str, typical: Typical | None = None) -> tuple[Decider, SchedulerFramework]:
    """A decider with this policy, and the side that reads requests; `Refused` for an unknown policy."""
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
    """A class with the settings built in, because plugins are instantiated without arguments."""

    class Replaying(GpuAllocator):
        def __init__(self) -> None:
            super().__init__(dataclasses.replace(settings, global_tags=settings_from(os.environ).global_tags))

    return Replaying
