"""The conformance kit passes for our own plugins: with each policy, all features of a request, and other plugins."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from contract.cards import card, part
from partage_plugins.api import GPU, Adjustment, Granted
from partage_plugins.api.node import NodeContext
from partage_plugins.hooks import hookimpl
from partage_plugins.testing import Subject
from partage_plugins.testing.examples import inventory, pod
from support.broker import FakeBroker
from unit.gpu_node.nodes import CARDS, FIRST

pytestmark = pytest.mark.slow

MILLI, MEMORY, GPUS = "partage.dev/gpu-milli", "partage.dev/gpu-memory", "partage.dev/gpus"
LIMIT, MODELS = "partage.dev/limit-milli", "partage.dev/models"
ALLOCATOR, NODE = "partage_gpu.allocator:GpuAllocator", "partage_gpu.node:GpuNode"
LINKS = [[18 * (one != other and one // 4 == other // 4) for other in range(8)] for one in range(8)]
TWO_CARDS = inventory(gpu=part(card(0), card(1)))
ONE_CARD = inventory(gpu=part(msgspec.to_builtins(CARDS[0])))
SPEC = {"etc/cdi/nvidia.yaml": (Path(__file__).parents[1] / "unit/gpu_node/samples/nvidia.yaml").read_text()}
ENFORCING = {"isolation": "contract.test_conformance:Enforcing"}


class Enforcing:
    """Stands for the isolation plugin."""

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        return Adjustment(enforces={GPU.name: ("memory", "share", "limit")}) if granted.of(GPU) else None


class BesideBroker:
    """Stands for the daemon, which would be a process of its own."""

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        self._broker = FakeBroker(Path(context.root))

    @hookimpl
    def partage_stopping(self) -> None:
        self._broker.close()


def granted(share: int, limit: int, memory: int) -> dict[str, str]:
    """A grant on the first card."""
    return {"gpu": json.dumps([{"card": FIRST, "share": share, "limit": limit, "memory": memory}])}


test_gpu_allocator = Subject(
    name="gpu",
    kind="gpu",
    scheduler=ALLOCATOR,
    pods=(
        pod({MILLI: "250"}, annotations={LIMIT: "500"}),
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
    inventories=(
        inventory(gpu=part(card(0), card(1), card(2))),
        inventory(gpu=part(card(3, memory_gib=16))),
        inventory(gpu={**part(*(card(number) for number in range(10, 18))), "links": LINKS}),
        inventory(),
    ),
)

test_gpu_of_both_sides = Subject(
    name="gpu",
    kind="gpu",
    scheduler=ALLOCATOR,
    node=NODE,
    pods=(pod({MILLI: "250"}, annotations={LIMIT: "500"}), pod({MILLI: "1000"}, name="whole")),
    inventories=(ONE_CARD, inventory()),
    files=SPEC,
    beside_node=ENFORCING,
)
"""A shared kind: the node must enforce what the scheduler's side promises."""

test_whole_cards = Subject(
    name="gpu",
    kind="gpu",
    node=NODE,
    inventories=(ONE_CARD,),
    grants=granted(1000, 1000, CARDS[0].memory_bytes),
    files=SPEC,
)
"""Whole cards need no enforcement."""

test_isolation = Subject(
    name="isolation",
    node="partage_isolation.plugin:IsolationNode",
    inventories=(ONE_CARD,),
    grants=granted(1000, 1000, 1 << 30),
    beside_node={"broker": "contract.test_conformance:BesideBroker"},
)
"""The plugin that attaches the library, with a broker that answers."""

test_native_dialect = Subject(
    name="native-dialect",
    scheduler="partage_dialects.native:NativeDialect",
    pods=(
        pod({MILLI: "250"}, annotations={LIMIT: "500", MODELS: "NVIDIA L4, NVIDIA T4"}),
        pod({MEMORY: "8Gi"}),
    ),
    inventories=(TWO_CARDS,),
)
"""A plugin that only reads requests owns no kind, so fewer checks apply."""

test_volcano = Subject(
    name="volcano-dialect",
    scheduler="partage_dialects.volcano:VolcanoDialect",
    pods=(
        pod({"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "3000", "volcano.sh/vgpu-cores": "50"}),
        pod({"volcano.sh/vgpu-memory": "1024"}, annotations={"nvidia.com/use-gputype": "l4"}, name="typed"),
        pod({"volcano.sh/gpu-memory": "1024"}, {"volcano.sh/gpu-memory": "512"}, name="older"),
    ),
    inventories=(TWO_CARDS,),
)

test_kai = Subject(
    name="kai-dialect",
    scheduler="partage_dialects.kai:KaiDialect",
    pods=(
        pod({}, annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}),
        pod({}, annotations={"gpu-memory": "1024"}, name="memory"),
    ),
    inventories=(TWO_CARDS,),
)

test_names_of_vgpu = Subject(
    name="vgpu-names",
    node="partage_dialects.vgpu_names:VgpuNames",
    inventories=(ONE_CARD,),
    grants=granted(250, 500, 1 << 30),
    beside_node=ENFORCING,
)
"""The variables that containers of Volcano and KAI users read."""
