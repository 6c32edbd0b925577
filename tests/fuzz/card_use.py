"""Anything that the child that calls NVML sends is decoded or refused, and every sample is one that a packet holds."""

from __future__ import annotations

from typing import Final

from partage_gpu.nvml.facts import Trouble
from partage_gpu.nvml.wire import Ended, NotUnderstood
from partage_isolation.audit.nvml_messages import WORDS, BrokerReport, CardRefused, Limited, Ready, Used

_STORY: Final[tuple[BrokerReport, ...]] = (
    Ready(),
    Ready(has_limits=True),
    Limited("GPU-1", "/sys/fs/cgroup/pod/container", 17, "it can't be opened"),
    Used("GPU-1", 1 << 60, ((1, 1 << 40), (4711, 0))),
    CardRefused("GPU-1", "Not Found (6)"),
    Ended(Trouble(kind="failed", sentence="the driver is gone")),
    Ended(Trouble(kind="no-library", sentence="there is none")),
)
SEEDS: Final = (b"", *map(WORDS.encoded, _STORY))


def target(data: bytes) -> str:
    try:
        message = WORDS.told(data)
    except NotUnderstood:
        return "refused"
    if isinstance(message, Used) and len(message.processes) * 2 > len(data):
        raise AssertionError("more processes than bytes")
    if WORDS.told(WORDS.encoded(message)) != message:
        raise AssertionError("what was understood can't be said again")
    return type(message).__name__
