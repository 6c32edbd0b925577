"""Measures how the cards fare. In the child process alone."""

from __future__ import annotations

from collections.abc import Iterator

from partage_gpu.nvml import calls as nvml
from partage_gpu.nvml.calls import Handle, Refused, optional
from partage_gpu.nvml.facts import Sample


def samples() -> tuple[Sample, ...]:
    """Of every card that answers, and of its MIG instances what NVML tells: their memory."""
    return tuple(sample for index in range(nvml.count()) for sample in _of_card(index))


def _of_card(index: int) -> Iterator[Sample]:
    try:
        card = nvml.card(index)
        yield _of_whole(card)
        if optional(nvml.is_mig, card):
            found = (optional(_of_instance, one) for one in optional(nvml.instances, card) or ())
            yield from (one for one in found if one is not None)
    except Refused:  # what a silent card means, the next look says
        return


def _of_whole(card: Handle) -> Sample:
    memory = optional(nvml.memory, card)
    return Sample(
        uuid=nvml.uuid(card),
        model=nvml.name(card),
        used_bytes=memory and memory.used,
        total_bytes=memory and memory.total,
        utilisation=optional(nvml.utilisation, card),
        temperature_celsius=optional(nvml.temperature, card),
        power_watts=optional(nvml.power, card),
    )


def _of_instance(instance: Handle) -> Sample:
    memory = optional(nvml.memory, instance)
    return Sample(
        uuid=nvml.uuid(instance),
        model=nvml.name(instance),
        used_bytes=memory and memory.used,
        total_bytes=memory and memory.total,
    )
