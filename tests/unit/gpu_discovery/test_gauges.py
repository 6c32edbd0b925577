"""Measurements: values that cards report, and the state reported for them."""

from __future__ import annotations

from partage_gpu.nvml.facts import Sample
from unit.gpu_discovery.making import HANGS, MIG_A, ONE, MadeNode, gpu, node_of

LABELS = {"node": "n1", "device_uuid": ONE, "model": "NVIDIA H100 80GB HBM3"}


def values(node: MadeNode) -> dict[tuple[str, str], float]:
    """The first card's values, by name and state."""
    return {
        (gauge.name, gauge.labels.get("health") or gauge.labels.get("pool") or ""): gauge.value
        for gauge in node.discovery.samples()
        if gauge.labels["device_uuid"] == ONE
    }


def test_a_card_tells_what_it_measures_in_base_units(node: MadeNode) -> None:
    node.driver.measured = (
        Sample(
            uuid=ONE,
            model=LABELS["model"],
            used_bytes=1 << 30,
            total_bytes=80 << 30,
            utilisation=0.25,
            temperature_celsius=41,
            power_watts=312.5,
        ),
    )
    node.driver.look()
    gauges = {gauge.name: gauge for gauge in node.discovery.samples()}
    assert {name: gauge.value for name, gauge in gauges.items()} == {
        "gpu_memory_used_bytes": 1 << 30,
        "gpu_memory_bytes": 80 << 30,
        "gpu_utilisation_ratio": 0.25,
        "gpu_temperature_celsius": 41,
        "gpu_power_watts": 312.5,
    }
    assert all(gauge.labels == LABELS for gauge in gauges.values())


def test_what_a_card_does_not_say_is_left_out(node: MadeNode) -> None:
    node.driver.measured = (Sample(uuid=MIG_A, model="x", used_bytes=0),)
    node.driver.look()
    assert [gauge.name for gauge in node.discovery.samples()] == ["gpu_memory_used_bytes"]


def test_health_and_pool_have_one_series_for_each_state(node: MadeNode) -> None:
    node.driver.says = node_of(gpu())
    node.xid(ONE, 94)
    node.look()
    assert values(node) == {
        ("gpu_health", "ok"): 0.0,
        ("gpu_health", "degraded"): 1.0,
        ("gpu_health", "lost"): 0.0,
        ("gpu_pool", "shared"): 1.0,
        ("gpu_pool", "kubelet"): 0.0,
        ("gpu_pool", "dra"): 0.0,
    }
    node.driver.says = HANGS
    node.look()
    assert values(node)["gpu_health", "lost"] == 1.0


def test_no_measurement_is_given_twice(node: MadeNode) -> None:
    sample = Sample(uuid=ONE, model="x", used_bytes=1)
    node.driver.measured = (sample, sample)
    node.look()
    given = [(gauge.name, tuple(gauge.labels.items())) for gauge in node.discovery.samples()]
    assert len(given) == len(set(given))
