"""An author's tests from before the kit was a pytest plugin: a class, and fixtures imported by name."""

from __future__ import annotations

import numpy as np
import pytest

from contract.cards import card, part
from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory, pod
from partage_plugins.testing.fixtures import SchedulerSides, plugin_host, scheduler_side

__all__ = ["plugin_host", "scheduler_side"]

pytestmark = pytest.mark.slow

MILLI, MEMORY = "partage.dev/gpu-milli", "partage.dev/gpu-memory"
ALLOCATOR = "contract.older.allocator:GpuScheduler"


class TestOlderAllocator(Conformance):
    subject = Subject(
        name="gpu",
        kind="gpu",
        scheduler=ALLOCATOR,
        pods=(
            pod({MILLI: "250"}, annotations={"partage.dev/limit-milli": "500"}),
            pod({MILLI: "100", MEMORY: "8Gi"}, {MILLI: "2000"}, name="large"),
        ),
        inventories=(
            inventory(gpu=part(card(0), card(1), card(2))),
            inventory(gpu=part(card(0, memory_gib=16))),
            inventory(),
        ),
    )


def test_the_node_with_less_free_share_is_preferred(scheduler_side: SchedulerSides) -> None:
    plugins = {"native-dialect": "partage_dialects.native:NativeDialect", "gpu": ALLOCATOR}
    side = scheduler_side(plugins, inventory(gpu=part(card(0), card(1))), inventory(gpu=part(card(0))))
    roomy, full = side.scores(side.requests(pod({MILLI: "250"})), np.array([0, 1], dtype=np.int32))
    assert full > roomy
