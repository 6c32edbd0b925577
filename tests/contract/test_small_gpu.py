"""The conformance kit against a kind that is shared: what it promises must be enforced, and many hold one card."""

from __future__ import annotations

from contract.small_gpu import card, part
from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory, pod

MILLI, MEMORY = "partage.dev/gpu-milli", "partage.dev/gpu-memory"
LIMIT, MODELS = "partage.dev/limit-milli", "partage.dev/models"


class TestSmallGpu(Conformance):
    subject = Subject(
        name="gpu",
        kind="gpu",
        scheduler="contract.small_gpu:GpuScheduler",
        node="contract.small_gpu:GpuNode",
        pods=(
            pod({MILLI: "250"}, annotations={LIMIT: "500"}),
            pod({MILLI: "100", MEMORY: "8Gi"}, {MILLI: "2000"}, name="large"),
        ),
        inventories=(
            inventory(gpu=part(card(0), card(1), card(2))),
            inventory(gpu=part(card(0, memory_gib=16))),
            inventory(),
        ),
    )


class TestNativeDialect(Conformance):
    """A plugin that only reads requests owns no kind, so fewer checks apply."""

    subject = Subject(
        name="native-dialect",
        scheduler="partage_dialects.native:NativeDialect",
        pods=(
            pod({MILLI: "250"}, annotations={LIMIT: "500", MODELS: "NVIDIA L4, NVIDIA T4"}),
            pod({MEMORY: "8Gi"}),
        ),
        inventories=(inventory(gpu=part(card(0))),),
    )
