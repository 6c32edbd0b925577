"""The series of single cards, pods and nodes: they match the cluster's accounting, and a page stays bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from partage_base.daemon.exposition import page
from partage_plugins.api import GPU, NodeName, PodUid, Pool, Reads, Ready
from partage_plugins.codecs import CRIT
from partage_scheduler import occupancy as occupancy_module
from partage_scheduler.core import Core, new_core, plugins
from partage_scheduler.occupancy import MOST_PODS, OccupancyMetrics
from partage_scheduler.signatures import as_written
from support.gpu_fleet import GIB, card
from support.objects import allocation, given, grant, node, of_cards, pod
from support.scheduler_stage import settings_below

SHARE, MEMORY = "partage_pod_promised_share_ratio", "partage_pod_promised_memory_bytes"
Series = Mapping[tuple[str, ...], float]


@pytest.fixture
def core(tmp_path: Path) -> Core:
    """Two nodes of one card each; the second has never sent a heartbeat."""
    core = new_core(settings_below(tmp_path), plugins(), trusted=as_written((GPU,)))
    for name in ("n1", "n2"):
        core.cluster.node(node(name, of_cards((card(f"{name}-0"),), reads=Reads(crit=CRIT))))
    core.cluster.heartbeat("n1", 0.0, 0.0)
    return core


def hold(core: Core, name: str, milli: int, *, namespace: str = "team", on: str = "n1") -> None:
    """Add a pod that runs there, with `milli` of the card and a GiB of its memory."""
    notes = given(allocation(f"uid-{name}", on, grant(f"{on}-0", milli, memory=GIB)))
    core.cluster.pod(pod(name, namespace=namespace, node=on, annotations=notes))


async def counted(core: Core, *, most_pods: int = MOST_PODS) -> OccupancyMetrics:
    occupancy = OccupancyMetrics(core.cluster, clock=lambda: 0.0, most_pods=most_pods)
    await occupancy.count()
    return occupancy


def shown(occupancy: OccupancyMetrics, name: str, *labels: str) -> Series:
    """The series as Prometheus reads it, by the values of these labels."""
    families = text_string_to_metric_families(page(occupancy.families()).decode())
    (found,) = (family for family in families if family.name == name)
    return {tuple(each.labels[label] for label in labels): each.value for each in found.samples}


async def test_of_each_card_it_is_said_how_much_pods_were_promised_and_who_they_are(core: Core) -> None:
    hold(core, "a", 300)
    hold(core, "b", 200, namespace="other")
    there = await counted(core)
    assert shown(there, "partage_card_promised_share_ratio", "node", "device_uuid") == {
        ("n1", "n1-0"): 0.5,
        ("n2", "n2-0"): 0.0,
    }
    assert shown(there, "partage_card_promised_memory_bytes", "node")["n1",] == 2 * GIB
    assert shown(there, "partage_card_memory_bytes", "node")["n2",] == card("x").memory_bytes
    assert shown(there, SHARE, "namespace", "pod", "node", "device_uuid") == {
        ("team", "a", "n1", "n1-0"): 0.3,
        ("other", "b", "n1", "n1-0"): 0.2,
    }
    assert shown(there, MEMORY, "pod") == {("a",): GIB, ("b",): GIB}
    assert shown(there, "partage_scheduler_cards") == {(): 2.0}


async def test_a_node_that_takes_no_part_is_shown_with_the_reason(core: Core) -> None:
    claims: Pool = "dra"
    core.cluster.node(node("plain"))
    core.cluster.node(node("bare", of_cards((card("bare-0"),), ready=Ready())))
    core.cluster.node(node("claims", of_cards((card("claims-0", pool=claims),), ready=Ready(broker=True))))
    core.cluster.node(node("silent", of_cards((card("silent-0", pool=claims),), ready=Ready(broker=True))))
    core.cluster.heartbeat("claims", 0.0, 0.0)
    core.cluster.node(node("half", of_cards((card("half-0", pool=claims),), ready=Ready())))
    there = await counted(core)
    assert shown(there, "partage_node_in_force", "node", "reason") == {
        ("n1", ""): 1.0,
        ("n2", "no-heartbeat"): 0.0,
        ("plain", "says-nothing"): 0.0,
        ("bare", "no-crishim"): 0.0,
        ("claims", ""): 1.0,
        ("silent", "no-heartbeat"): 0.0,
        ("half", "no-broker"): 0.0,
    }


async def test_a_namespace_with_very_many_pods_has_fewer_of_them_shown_and_others_all(core: Core) -> None:
    for number in range(5):
        hold(core, f"many-{number}", 1, namespace="many")
    hold(core, "few", 1, namespace="few")
    there = await counted(core, most_pods=3)
    assert sorted(namespace for (namespace, _) in shown(there, SHARE, "namespace", "pod")) == ["few", "many", "many"]
    assert shown(there, "partage_scheduler_unshown_pods") == {(): 3.0}


async def test_who_asks_all_the_time_has_nothing_counted_again(core: Core) -> None:
    there = await counted(core)
    hold(core, "a", 300)
    assert not shown(there, SHARE, "pod")
    await there.count()
    assert shown(there, SHARE, "pod") == {("a",): 0.3}


async def test_others_have_turns_while_it_counts_and_a_node_may_go_meanwhile(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(occupancy_module, "_TURN_S", 0.0)
    counting = asyncio.create_task(counted(core))
    await asyncio.sleep(0)
    core.cluster.node_gone(NodeName("n2"))
    there = await counting
    assert shown(there, "partage_card_promised_share_ratio", "node") == {("n1",): 0.0}


async def test_a_pod_that_takes_the_place_of_one_alike_is_shown_in_its_stead(core: Core) -> None:
    hold(core, "a", 300)
    there = await counted(core)
    assert shown(there, SHARE, "pod") == {("a",): 0.3}
    core.cluster.pod_gone(PodUid("uid-a"))
    hold(core, "b", 300)
    await there.count()
    assert shown(there, SHARE, "pod") == {("b",): 0.3}
