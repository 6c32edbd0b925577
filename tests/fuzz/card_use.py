"""Whatever the child that asks NVML sends: it is understood or refused, and every sample is one that a packet holds."""

from __future__ import annotations

from typing import Final

from partage_isolation.audit.nvml_messages import (
    CardRefused,
    Ended,
    Limited,
    NotUnderstood,
    Ready,
    Told,
    Used,
    encoded,
    told,
)

_STORY: Final[tuple[Told, ...]] = (
    Ready(),
    Ready(has_limits=True),
    Limited("GPU-1", "/sys/fs/cgroup/pod/container", 17, "it can't be opened"),
    Used("GPU-1", 1 << 60, {1: 1 << 40, 4711: 0}),
    CardRefused("GPU-1", "Not Found (6)"),
    Ended("the driver is gone", has_library=True),
    Ended("there is none", has_library=False),
)
SEEDS: Final = (b"", *map(encoded, _STORY))


def target(data: bytes) -> str:
    try:
        message = told(data)
    except NotUnderstood:
        return "refused"
    if isinstance(message, Used) and len(message.processes) * 16 > len(data):
        raise AssertionError("more processes than bytes")
    if "�" not in str(message) and told(encoded(message)) != message and len(data) < 1000:
        raise AssertionError("what was understood can't be said again")
    return type(message).__name__
