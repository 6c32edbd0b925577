"""Utilisation of cards, total and by process, follows programs' use of them."""

from __future__ import annotations

import subprocess
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from partage_simgpu.node import SimulatedNode
from simgpu.nvml.programs import NOT_FOUND, NOT_SUPPORTED, Program
from support.simgpu import built
from support.steered import eventually

pytestmark = pytest.mark.slow

FLOOD_S = 60


@contextmanager
def flooded(node: SimulatedNode) -> Generator[int]:
    """A program keeps the node's first card busy; its pid."""
    command = [str(built() / "flood"), "--seconds", str(FLOOD_S), "--kernel-us", "1000"]
    known = {**node.environment, "CUDA_DEVICE_ORDER": "PCI_BUS_ID"}  # as NVML counts; CUDA's default order is by speed
    running = subprocess.Popen(command, env=known, stdout=subprocess.DEVNULL)
    try:
        yield running.pid
    finally:
        running.kill()
        running.wait()


def gpu_use(one: Program, card: str = "card") -> int:
    percent: int = one.ask(f"nvmlDeviceGetUtilizationRates({card}).gpu")
    return percent


def test_a_flooded_card_is_busy_and_the_other_is_not(node: SimulatedNode, nvml: Program) -> None:
    assert gpu_use(nvml) == 0
    with flooded(node):
        eventually(lambda: gpu_use(nvml) > 90, "the flooded card is busy")
        assert gpu_use(nvml, "nvmlDeviceGetHandleByIndex(1)") == 0
    eventually(lambda: gpu_use(nvml) == 0, "the card is idle again")


def test_power_and_clocks_rise_with_use(node: SimulatedNode, nvml: Program) -> None:
    idle = nvml.ask("[nvmlDeviceGetPowerUsage(card), nvmlDeviceGetClockInfo(card, NVML_CLOCK_SM)]")
    with flooded(node):
        eventually(lambda: gpu_use(nvml) > 90, "the flooded card is busy")
        busy = nvml.ask("[nvmlDeviceGetPowerUsage(card), nvmlDeviceGetClockInfo(card, NVML_CLOCK_SM)]")
    assert busy[0] > 5 * idle[0]
    assert busy[1] > idle[1]
    assert busy[0] <= nvml.ask("nvmlDeviceGetEnforcedPowerLimit(card)")


def test_use_is_told_by_process(node: SimulatedNode, nvml: Program) -> None:
    nvml.ask("(since := time.time_ns() // 1000) and None")
    with flooded(node) as pid:
        told = "nvmlDeviceGetProcessUtilization(card, since)"
        eventually(lambda: nvml.error(told) == 0, "a process used the card")
        found = nvml.ask(told)
        assert [one["pid"] for one in found] == [pid]
        assert 0 < found[0]["smUtil"] <= 100
        now = nvml.ask("time.time_ns() // 1000")
        assert abs(now - found[0]["timeStamp"]) < 60_000_000
        assert nvml.error(f"nvmlDeviceGetProcessUtilization(card, {now + 60_000_000})") == NOT_FOUND


def test_samples_are_asked_for_since_the_last_one(node: SimulatedNode, nvml: Program) -> None:
    told = "[(one.timeStamp, one.sampleValue.uiVal) for one in nvmlDeviceGetSamples(card, 1, {since})[1]]"
    with flooded(node):
        eventually(lambda: gpu_use(nvml) > 90, "the flooded card is busy")
        first = nvml.ask(told.format(since=0))
        assert [stamp for stamp, _ in first] == sorted({stamp for stamp, _ in first})
        assert max(percent for _, percent in first) > 90
        last = first[-1][0]
        eventually(lambda: nvml.error(f"nvmlDeviceGetSamples(card, 1, {last})") == 0, "there is a later sample")
        assert min(stamp for stamp, _ in nvml.ask(told.format(since=last))) > last
    assert nvml.error("nvmlDeviceGetSamples(card, 99, 0)") == NOT_SUPPORTED
