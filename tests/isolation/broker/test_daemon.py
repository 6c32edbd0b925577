"""The broker as a daemon: its self-description, limits enforced by the driver, and its metrics for Prometheus."""

from __future__ import annotations

import asyncio
import json
import urllib.request

import pytest
from prometheus_client.parser import text_string_to_metric_families

from isolation.broker.workers import workers
from partage_plugins.api.keys import CONTAINER
from partage_simgpu.description import card_uuid
from rig.patience import patience_s
from support.cgroups import control_group, entering
from support.fake_runtime import FakeRuntime
from support.isolated import Contained, isolated, until
from support.processes import free_port
from support.simgpu import NODE, card, newer_driver
from support.splice.sockets import RuntimeSocket

pytestmark = pytest.mark.slow
MIB = 1 << 20


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


# ---- The driver's own limits -----------------------------------------------------------------------------------------


ID = "ab" * 32
RUNTIME = "cri.sock"


async def test_the_driver_holds_what_is_in_force_and_people_are_told() -> None:
    with (
        isolated(settings={"runtime": f"/{RUNTIME}", "on_violation": "report"}) as place,
        control_group(f"cri-containerd-{ID}.scope") as group,
    ):
        newer_driver(place.node)
        container = place.prepare(1024 * MIB)
        annotation = json.dumps({"v": 1, "key": container.key, "gen": 1, "grants": {"gpu": []}})
        runtime = FakeRuntime()
        runtime.put(ID, {CONTAINER: annotation})
        first = await asyncio.create_subprocess_exec(*entering(group), "sleep", "1000")
        runtime.pids[ID] = first.pid
        try:
            assert container.told().cards[0].driver_limit_bytes is None
            async with RuntimeSocket(place.root / RUNTIME, runtime):
                await asyncio.to_thread(_follows_limits, container)
        finally:
            first.kill()
            await first.wait()


def _follows_limits(container: Contained) -> None:
    until(lambda: container.told().cards[0].driver_limit_bytes == 1024 * MIB)
    container.lower(512 * MIB)
    until(lambda: container.told().cards[0].driver_limit_bytes == 512 * MIB)
    container.lower(None)
    assert container.told().cards[0].driver_limit_bytes == 1024 * MIB, "before it may be lent"
