"""The small programs that use a card, by name: each is a C file in `simgpu/workloads`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

WORKLOADS: Final[Mapping[str, str]] = {
    "allocate": "takes memory of every kind and tells what each took from the card",
    "flood": "launches kernels without ever waiting",
    "graph-replay": "launches a graph of kernels again and again",
    "inference": "answers requests that come at a rate, and tells how long they took",
    "launch-cost": "measures what a launch costs its thread",
    "launch-wait": "launches one kernel at a time and waits for it",
    "mixed": "launches kernels of 10 us, 1 ms and 30 ms without ever waiting",
    "several": "floods a card from several processes at once",
}
"""What each does, in the words of its own --help."""
