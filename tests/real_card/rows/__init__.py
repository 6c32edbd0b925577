"""All rows by importance: an interrupted run has asked the most decisive ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from real_card.row import Row
from real_card.rows import conformance, container, driver, time

_FIRST_FLOODS: Final = ("30-70-queue-1000us", "10-90-queue-1000us", "30-70-queue-10us", "10-90-queue-10us")
_MORE_FLOODS: Final = ("30-70-queue-30000us", "10-90-queue-30000us", "30-70-wait-1000us", "10-90-wait-1000us")
_MEMORY_AREAS: Final = ("pools", "virtual", "sharing")
_ORDER: Final[Mapping[str, Sequence[str]]] = {
    "A program with a limit": ("torch", "fill"),
    "Shares of time": [f"shares-{flood}" for flood in _FIRST_FLOODS],
    "The cost of a launch": [f"{kind}-cost-{when}" for kind in ("kernel", "graph") for when in ("free", "leased")],
    "nvidia-smi": ("nvidia-smi",),
    "Inference beside a flood": ("inference", "inference-torch", "torch-shares", "torch-speed"),
    "A kill": ("death", "managed-death", "memory-back"),
    "Suspended, and moved": ("checkpoint", "managed-speed"),
    "Exits in flight": ("exits",),
    "Names and versions": ("names",),
    "Growth": ("context-size", "graph-memory", "local-memory", "lazy-loading"),
    "Kinds of memory, and frameworks": (
        *("managed-memory", "managed-pool", "managed-limit", *(f"conformance-{area}" for area in _MEMORY_AREAS)),
        *("torch-async", "torch-expandable", "torch-spawn", "torch-compile", "triton", "jax", "cupy", "numba"),
        *("cuda-runtime", "green-context", "abilities", "nvml-cost"),
    ),
    "More of time": (
        *("past-context", "open-capture", "absolute-path", "control", "shares-blocking", "long-kernel"),
        *("dependent-launch", "graphs-alone", "legacy-stream", *(f"shares-{flood}" for flood in _MORE_FLOODS)),
    ),
    "Tools": ("compute-sanitizer", "ncu", "cuda-gdb"),
    "Conformance": [f"conformance-{area}" for area in conformance.AREAS if area not in _MEMORY_AREAS],
}
_BY_NAME: Final = {row.name: row for rows in (driver.ROWS, container.ROWS, time.ROWS, conformance.ROWS) for row in rows}


def _sections() -> Iterator[tuple[str, Sequence[Row]]]:
    for title, names in _ORDER.items():
        yield title, [_BY_NAME[name] for name in names]


SECTIONS: Final[Mapping[str, Sequence[Row]]] = dict(_sections())
EVERY: Final[Sequence[Row]] = [row for rows in SECTIONS.values() for row in rows]
