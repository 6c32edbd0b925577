"""The GPU allocator against the conformance kit, with each policy and with every feature of a request."""

from __future__ import annotations

import pytest

from contract.small_gpu import card, part
from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory, pod

MILLI, MEMORY, GPUS = "partage.dev/gpu-milli", "partage.dev/gpu-memory", "partage.dev/gpus"
LINKS = [[18 * (one != other and one // 4 == other // 4) for other in range(8)] for one in range(8)]
INVENTORIES = (
    inventory(gpu=part(card(0), card(1), card(2))),
    inventory(gpu=part(card(3, memory_gib=16))),
    inventory(gpu={**part(*(card(number) for number in range(10, 18))), "links": LINKS}),
    inventory(),
)


@pytest.mark.slow
class TestGpuAllocator(Conformance):
    subject = Subject(
        name="gpu",
        kind="gpu",
        scheduler="partage_gpu.allocator:GpuAllocator",
        pods=(
            pod({MILLI: "250"}, annotations={"partage.dev/limit-milli": "500"}),
            pod({MEMORY: "8Gi"}, name="memory-alone"),
            pod({MILLI: "100", MEMORY: "8Gi"}, {MILLI: "2000"}, name="two-containers"),
            pod({MILLI: "2000", GPUS: "2"}, annotations={"partage.dev/exclusion": "blue"}, name="exclusive"),
            pod({MILLI: "470"}, annotations={"partage.dev/affinity": "a"}, name="together"),
            pod({MILLI: "470"}, annotations={"partage.dev/anti-affinity": "a"}, name="apart"),
            pod({MILLI: "2000"}, annotations={"partage.dev/policy": "topology"}, name="linked"),
            pod({MILLI: "2000"}, annotations={"partage.dev/topology": "numa"}, name="close"),
            pod({MILLI: "300"}, annotations={"partage.dev/policy": "fgd+=2,topology=1"}, name="weighted"),
            pod({MILLI: "300"}, annotations={"partage.dev/policy": "spread"}, name="spread"),
            pod({MILLI: "300"}, {MILLI: "500"}, annotations={"partage.dev/policy": "main: fgd; side-1: kubeshare"}),
        ),
        inventories=INVENTORIES,
    )
