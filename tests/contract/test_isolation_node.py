"""The conformance kit against the node plugin that attaches the library, beside a broker that answers."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from contract.small_gpu import part
from partage_plugins.hooks import hookimpl
from partage_plugins.testing import Conformance, Subject
from partage_plugins.testing.examples import inventory
from partage_plugins.vocabulary.node import NodeContext
from support.broker import Broker
from unit.gpu_node.nodes import CARDS, FIRST

pytestmark = pytest.mark.slow


class BesideBroker:
    """Stands for the daemon, which would be a process of its own."""

    @hookimpl
    def partage_started(self, context: NodeContext) -> None:
        self._broker = Broker(Path(context.root))

    @hookimpl
    def partage_stopping(self) -> None:
        self._broker.close()


class TestSlices(Conformance):
    subject = Subject(
        name="isolation",
        node="partage_isolation.plugin:IsolationNode",
        inventories=(inventory(gpu=part(msgspec.to_builtins(CARDS[0]))),),
        grants={"gpu": json.dumps([{"card": FIRST, "share": 1000, "limit": 1000, "memory": 1 << 30}])},
        beside_node={"broker": "contract.test_isolation_node:BesideBroker"},
    )
