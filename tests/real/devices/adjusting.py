"""Calls the built-in node plugin on the node where this runs, and prints its adjustment as JSON.

Run as `python adjusting.py REQUEST`: the inventory's part, the ids of the granted cards and the runtime handler.
"""

from __future__ import annotations

import os
import sys
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from partage_gpu.node import GpuNode
from partage_plugins.api import GPU, CardId, GpuGrant, GpuPart, Granted, NodeName, Security
from partage_plugins.api.node import NodeContext
from partage_plugins.testing.examples import container


class Request(Struct, frozen=True):
    """The granted cards and their node."""

    part: GpuPart
    cards: tuple[CardId, ...]
    handler: str = ""


def main(text: str) -> None:
    """Ask for one container, as crishim does."""
    request = msgspec.json.decode(text, type=Request)
    grants = tuple(GpuGrant(card=card, share_milli=1000, limit_milli=1000, memory_bytes=0) for card in request.cards)
    plugin = GpuNode()
    context = NodeContext(
        node=NodeName("n1"),
        role="crishim",
        root=PurePosixPath("/"),
        wake=lambda: None,
        driver_root=PurePosixPath(os.environ["PARTAGE_DRIVER_ROOT"]),
    )
    plugin.partage_started(context)
    granted = Granted(gen=1, grants={GPU.name: grants}, parts={GPU.name: request.part})
    adjustment = plugin.partage_adjust(container(security=Security(runtime_handler=request.handler)), granted)
    sys.stdout.write(msgspec.json.encode(adjustment).decode())


if __name__ == "__main__":
    main(sys.argv[1])
