"""The conformance kit against the built-in node side of cards: whole cards, and shares that another enforces."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from contract.small_gpu import part
from partage_plugins.hooks import hookimpl
from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory
from partage_plugins.vocabulary import GPU, Adjustment, Card, CardId, Granted

pytestmark = pytest.mark.slow


_CARD = Card(
    id=CardId("GPU-5a1e3c8e-0f0b-4d2a-9c11-0123456789ab"),
    index=0,
    model="NVIDIA H100 80GB HBM3",
    memory_bytes=80 << 30,
    compute_capability="9.0",
    pci="0000:18:00.0",
    pool="shared",
)
_NODE = "partage_gpu.node:GpuNode"
_SPEC = (Path(__file__).parents[1] / "unit/gpu_node/samples/nvidia.yaml").read_text()
_INVENTORIES = (inventory(gpu=part(msgspec.to_builtins(_CARD))),)


class Enforcing:
    """Stands for the isolation plugin."""

    @hookimpl
    def partage_adjust(self, granted: Granted) -> Adjustment | None:
        return Adjustment(enforces={GPU.name: ("memory", "share", "limit")}) if granted.of(GPU) else None


class TestWholeCards(Conformance):
    subject = Subject(
        name="gpu",
        kind="gpu",
        node=_NODE,
        inventories=_INVENTORIES,
        grants={"gpu": json.dumps([{"card": _CARD.id, "share": 1000, "limit": 1000, "memory": _CARD.memory_bytes}])},
        files={"etc/cdi/nvidia.yaml": _SPEC},
    )


class TestShares(Conformance):
    subject = Subject(
        name="gpu",
        kind="gpu",
        node=_NODE,
        inventories=_INVENTORIES,
        grants={"gpu": json.dumps([{"card": _CARD.id, "share": 250, "limit": 500, "memory": 1 << 30}])},
        files={"etc/cdi/nvidia.yaml": _SPEC},
        beside_node={"isolation": "contract.test_gpu_node:Enforcing"},
    )
