"""The broker as a daemon: what it says of itself, and what it needs to start."""

from __future__ import annotations

import socket
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from isolation.broker.workers import workers
from partage_simgpu.description import card_uuid
from rig.patience import patience_s
from support.isolated import isolated, until
from support.simgpu import NODE, card

pytestmark = pytest.mark.slow
MIB = 1 << 20


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def test_its_figures_are_there_for_each_container_and_card() -> None:
    address = f"127.0.0.1:{free_port()}"
    small = card("t4", memory_mib=2048, reserved_mib=100, context_mib=64)
    with isolated(cards=(small,), settings={"metrics_address": address, "node_name": "n1"}) as place:
        container = place.prepare(1024 * MIB)
        with workers(container, 1) as (one,):
            assert one.do("context()")
            assert one.do("take(200 << 20)")
            assert not one.do("take(2000 << 20)")
            until(lambda: container.told().cards[0].overhead_bytes == 64 * MIB)
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=patience_s()) as page:
                families = {family.name: family for family in text_string_to_metric_families(page.read().decode())}
    labels = {
        "node": "n1",
        "device_uuid": card_uuid(NODE, 0),
        "model": card_uuid(NODE, 0),
        "namespace": "tests",
        "pod": "pod-1",
        "container": "main",
    }
    expected = {
        "partage_container_memory_limit_bytes": 1024 * MIB,
        "partage_container_memory_used_bytes": 200 * MIB,
        "partage_container_memory_overhead_bytes": 64 * MIB,
        "partage_container_refused_allocations": 1,
    }
    for name, value in expected.items():
        (sample,) = families[name].samples
        assert (sample.labels, sample.value) == (labels, value), name
    states = {sample.labels["state"]: sample.value for sample in families["partage_broker_sessions"].samples}
    assert states == {"live": 1, "detached": 0, "unconfirmed": 0, "dead": 0}
