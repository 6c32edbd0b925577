"""The conformance kit against Volcano's and KAI's dialects, and against the names that its users read in containers."""

from __future__ import annotations

import json

from contract.small_gpu import card, part
from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory, pod

_INVENTORY = inventory(gpu=part(card(0), card(1)))
_GRANT = {"card": card(0)["id"], "share": 250, "limit": 500, "memory": 1 << 30}


class TestVolcano(Conformance):
    subject = Subject(
        name="volcano-dialect",
        scheduler="partage_dialects.volcano:VolcanoDialect",
        pods=(
            pod({"volcano.sh/vgpu-number": "2", "volcano.sh/vgpu-memory": "3000", "volcano.sh/vgpu-cores": "50"}),
            pod({"volcano.sh/vgpu-memory": "1024"}, annotations={"nvidia.com/use-gputype": "l4"}, name="typed"),
            pod({"volcano.sh/gpu-memory": "1024"}, {"volcano.sh/gpu-memory": "512"}, name="older"),
        ),
        inventories=(_INVENTORY,),
    )


class TestKai(Conformance):
    subject = Subject(
        name="kai-dialect",
        scheduler="partage_dialects.kai:KaiDialect",
        pods=(
            pod({}, annotations={"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}),
            pod({}, annotations={"gpu-memory": "1024"}, name="memory"),
        ),
        inventories=(_INVENTORY,),
    )


class TestNames(Conformance):
    subject = Subject(
        name="vgpu-names",
        node="partage_dialects.vgpu_names:VgpuNames",
        inventories=(_INVENTORY,),
        grants={"gpu": json.dumps([_GRANT])},
        beside_node={"enforcing": "contract.test_gpu_node:Enforcing"},
    )
