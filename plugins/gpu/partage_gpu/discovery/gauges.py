"""Makes gauges of what cards measure, and of what is said about them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from partage_gpu.discovery.causes import plain
from partage_gpu.nvml.facts import Sample
from partage_plugins.vocabulary.gpu import GpuPart
from partage_plugins.vocabulary.node import Gauge

HEALTHS: Final = ("ok", "degraded", "lost")
POOLS: Final = ("shared", "kubelet")


def gauges(node: str, samples: Iterable[Sample], part: GpuPart | None) -> list[Gauge]:
    """What the cards say themselves, and what the inventory says of them; each measurement once."""
    return [*_measured(node, {sample.uuid: sample for sample in samples}.values()), *_said(node, part)]


def _measured(node: str, samples: Iterable[Sample]) -> Iterator[Gauge]:
    for sample in samples:
        labels = _labels(node, sample.uuid, sample.model)
        figures = {
            "gpu_memory_used_bytes": sample.used_bytes,
            "gpu_memory_bytes": sample.total_bytes,
            "gpu_utilisation_ratio": sample.utilisation,
            "gpu_temperature_celsius": sample.temperature_celsius,
            "gpu_power_watts": sample.power_watts,
        }
        for name, figure in figures.items():
            if figure is not None:
                yield Gauge(name=name, value=float(figure), labels=labels)


def _said(node: str, part: GpuPart | None) -> Iterator[Gauge]:
    """One series for each state, so that a rule can ask for any of them."""
    for card in part.cards if part else ():
        labels = _labels(node, card.id, card.model)
        for health in HEALTHS:
            yield Gauge(name="gpu_health", value=float(health == card.state), labels={**labels, "health": health})
        for pool in POOLS:
            yield Gauge(name="gpu_pool", value=float(pool == card.pool), labels={**labels, "pool": pool})


def _labels(node: str, uuid: str, model: str) -> dict[str, str]:
    return {"node": node, "device_uuid": uuid, "model": plain(model, otherwise="unknown")}
