"""A whole scheduler places pods that the API server reports, and reports what it did."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from partage_plugins.api.keys import ALLOCATION, POLICY, SIGNATURE
from partage_scheduler.api.streams import KINDS
from partage_scheduler.cluster.unknown import UNREAD
from support.fake_api import FakeApi, Hang, Lists, Refuse
from support.kube import until
from support.objects import pod_body
from support.scheduler_stage import LEASES, NODES, Truth, add_node, add_pod, scheduler, settings_below, unbound
from support.scheduling import PODS, stands


async def test_pods_are_bound_with_signed_allocations_and_no_card_is_over_committed(
    api: FakeApi, tmp_path: Path
) -> None:
    for name in ("n1", "n2"):
        add_node(api, name)
    for number in range(8):
        add_pod(api, f"p{number}", 500)
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: not unbound(api))
        assert not running.health.against_ready
        await until(lambda: not running.parts.worker.in_flight)
        assert all(size == 0 for size in running.parts.core.queue.sizes().values())
    assert Truth(api, tmp_path).check()["bound"] == 8


async def test_a_pod_that_fits_nowhere_says_why_and_is_placed_when_there_is_room(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    for number in range(3):
        add_pod(api, f"p{number}", 1000)
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: len(unbound(api)) == 1)
        (waits,) = unbound(api)
        await until(lambda: stands(api, waits).status.conditions)
        condition = stands(api, waits).status.conditions[0]
        assert (condition.status, condition.reason) == ("False", "Unschedulable")
        assert condition.message.startswith("0/1 nodes are available: ")
        gone = next(f"p{number}" for number in range(3) if f"p{number}" != waits)
        api.objects.delete(f"{PODS}/{gone}")
        await until(lambda: not unbound(api))


async def test_bindings_of_one_namespace_that_take_long_keep_no_pod_of_another_waiting(
    api: FakeApi, tmp_path: Path
) -> None:
    flood = "/api/v1/namespaces/flood/pods"
    for number in range(4):
        add_node(api, f"n{number}")
    api.expect(Hang(), method="POST", under=flood, times=99)
    for number in range(9):
        api.objects.create(flood, pod_body(f"p{number}", namespace="flood", milli=100))
    async with scheduler(api, settings_below(tmp_path, elect=False, in_flight=8)):
        await until(lambda: api.count("POST", flood) == 8)
        for number in range(5):
            add_pod(api, f"quiet-{number}", 100)
        await until(lambda: all(stands(api, f"quiet-{number}").node for number in range(5)))
        assert api.count("POST", flood) == 8, "no more of them than may be under way"
        api.release()


@pytest.mark.parametrize(("weights", "node"), [((), "n2"), (("gpu=0",), "n1")])
async def test_scores_count_by_the_weights_that_are_set(
    api: FakeApi, tmp_path: Path, weights: tuple[str, ...], node: str
) -> None:
    """The policy spreads the second pod; where that score has no weight, the first node is as good."""
    for name in ("n1", "n2"):
        add_node(api, name)
    async with scheduler(api, settings_below(tmp_path, score_weights=weights)):
        for name in ("p0", "p1"):
            add_pod(api, name, 500, annotations={POLICY: "spread"})
            await until(lambda: not unbound(api))
    assert [stands(api, name).spec.node_name for name in ("p0", "p1")] == ["n1", node]


@pytest.mark.parametrize("mirror", [True, False])
async def test_what_a_pod_was_given_stands_in_its_own_systems_words_too_where_that_is_wanted(
    api: FakeApi, tmp_path: Path, *, mirror: bool
) -> None:
    add_node(api, "n1")
    vgpu = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "1024", "volcano.sh/vgpu-cores": "30"}
    async with scheduler(api, settings_below(tmp_path, mirror=mirror)):
        add_pod(api, "p", limits=vgpu)
        await until(lambda: not unbound(api))
    written = api.objects.get(f"{PODS}/p")["metadata"]["annotations"]
    allocation = json.loads(written[ALLOCATION])
    (grant,) = next(iter(allocation["containers"].values()))["gpu"]
    mirrored = {
        "volcano.sh/vgpu-ids-new": f"{grant['card']},NVIDIA,1024,30:",
        "volcano.sh/vgpu-node": "n1",
        "volcano.sh/bind-phase": "success",
    }
    assert {key: text for key, text in written.items() if key.startswith("volcano.sh/")} == (mirrored if mirror else {})


@pytest.mark.parametrize(("lists", "in_pages"), [(Lists.STREAMED, 0), (Lists.REFUSED, len(KINDS))])
async def test_all_that_there_is_is_learnt_streamed_or_in_pages(
    api: FakeApi, tmp_path: Path, lists: Lists, in_pages: int
) -> None:
    api.lists = lists
    add_node(api, "n1")
    add_pod(api, "p", 500)
    async with scheduler(api, settings_below(tmp_path, elect=False)):
        await until(lambda: not unbound(api))
    queries = [asked.query for asked in api.asked if asked.method == "GET"]
    assert sum("sendInitialEvents" in query for query in queries) == len(KINDS)
    assert sum("watch" not in query for query in queries) == in_pages


@pytest.mark.parametrize("lists", [Lists.STREAMED, Lists.REFUSED])
async def test_objects_that_can_not_be_read_cost_their_node_and_nobody_else(
    api: FakeApi, tmp_path: Path, lists: Lists
) -> None:
    api.lists = lists
    for name in ("n1", "n2"):
        add_node(api, name)
    add_pod(api, "odd", nodeName="n1", priority="none of the API's")
    api.objects.create("/api/v1/persistentvolumes", {"metadata": {"name": "v"}, "spec": "odd"})
    async with scheduler(api, settings_below(tmp_path)) as running:
        for number in range(5):
            add_pod(api, f"p{number}", 500)
        await until(lambda: len(unbound(api)) == 1)
        (waits,) = unbound(api)
        await until(lambda: stands(api, waits).status.conditions)
        assert UNREAD.words in stands(api, waits).status.conditions[0].message
        page = running.metrics.page().decode().splitlines()
        for kind in ("pods", "persistentvolumes"):
            assert f'partage_scheduler_unread_objects_total{{kind="{kind}"}} 1.0' in page
        api.objects.delete(f"{PODS}/odd")
        await until(lambda: not unbound(api))
        api.objects.patch(f"{NODES}/n2", {"spec": {"unschedulable": "odd"}})
        await until(lambda: len(running.parts.core.cluster.fleet) == 1)


async def test_pods_of_other_schedulers_are_left_alone_and_count(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    add_pod(api, "other", schedulerName="default-scheduler")
    add_pod(api, "held", nodeName="n1", limits={"cpu": "63500m"})
    add_pod(api, "ours", limits={"cpu": "1"})
    async with scheduler(api, settings_below(tmp_path)):
        await until(lambda: stands(api, "ours").status.conditions)
        assert "Insufficient cpu" in stands(api, "ours").status.conditions[0].message
        api.objects.delete(f"{PODS}/held")
        await until(lambda: stands(api, "ours").node == "n1")
        assert not stands(api, "other").node


async def test_a_new_scheduler_believes_what_the_last_one_signed(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    settings = settings_below(tmp_path, elect=False)
    add_pod(api, "first", 700)
    async with scheduler(api, settings):
        await until(lambda: not unbound(api))
    add_pod(api, "second", 700)
    add_pod(api, "third", 700)
    async with scheduler(api, settings):
        await until(lambda: len(unbound(api)) == 1)
        (waits,) = unbound(api)
        await until(lambda: stands(api, waits).status.conditions)
    assert Truth(api, tmp_path).check()["bound"] == 2


async def test_a_card_is_not_given_away_while_its_pod_runs_without_its_allocation(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    settings = settings_below(tmp_path, elect=False)
    add_pod(api, "a", 2000)
    async with scheduler(api, settings):
        await until(lambda: not unbound(api))
        api.objects.patch(f"{PODS}/a", {"metadata": {"annotations": {ALLOCATION: None, SIGNATURE: None}}})
        await until(lambda: told(api, "AllocationNotAsGiven"))
        add_pod(api, "b", 1000)
        await until(lambda: stands(api, "b").status.conditions)
    async with scheduler(api, settings):
        add_pod(api, "c", 1000)
        await until(lambda: stands(api, "c").status.conditions)
        await until(lambda: len(told(api, "AllocationNotAsGiven")) == 2)
    assert unbound(api) == ["b", "c"]
    first, second = told(api, "AllocationNotAsGiven")
    assert "what was verified before counts" in first
    assert "its request counts on every card" in second


def told(api: FakeApi, reason: str) -> list[str]:
    events = api.objects.select("/api/v1/namespaces/team/events", {})
    return [event["message"] for event in events if event["reason"] == reason]


async def test_nothing_is_placed_while_what_is_known_may_be_out_of_date(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: not running.health.against_ready)
        api.expect(Refuse(500), under=NODES, times=20)
        api.end_watches()
        await until(lambda: "caches" in running.health.against_ready)
        add_pod(api, "p", 500)
        while "nodes" in running.parts.freshness.missing:
            assert unbound(api) == ["p"]
            await asyncio.sleep(0.005)
        await until(lambda: not unbound(api))
        assert not running.health.against_ready


@pytest.mark.slow
async def test_a_follower_is_ready_and_does_nothing(api: FakeApi, tmp_path: Path) -> None:
    add_node(api, "n1")
    async with (
        scheduler(api, settings_below(tmp_path)) as one,
        scheduler(api, settings_below(tmp_path)) as two,
    ):
        await until(lambda: not (one.health.against_ready or two.health.against_ready))
        leaders = [each for each in (one, two) if each.parts.elector and each.parts.elector.leads]
        (follower,) = [each for each in (one, two) if each not in leaders]
        assert follower.parts.freshness.missing
        add_pod(api, "p", 500)
        await until(lambda: not unbound(api))


async def test_a_scheduler_that_does_not_know_who_leads_is_not_ready(api: FakeApi, tmp_path: Path) -> None:
    api.expect(Refuse(403), under=LEASES, times=1000)
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: api.count("GET", LEASES))
        assert set(running.health.against_ready) == {"lead"}


async def test_a_leader_is_not_ready_until_it_knows_all_that_there_is(api: FakeApi, tmp_path: Path) -> None:
    api.expect(Refuse(500), under=NODES, times=3)
    async with scheduler(api, settings_below(tmp_path)) as running:
        await until(lambda: running.parts.elector and running.parts.elector.leads)
        await until(lambda: set(running.health.against_ready) == {"caches"})
        await until(lambda: not running.health.against_ready)


@pytest.mark.parametrize(("milli", "events"), [(600, 1), (1000, 0)])
async def test_a_gang_on_several_nodes_with_parts_of_cards_is_told_what_that_costs(
    api: FakeApi, tmp_path: Path, milli: int, events: int
) -> None:
    names = ("p0", "p1", "p2")
    for node in ("n1", "n2"):
        add_node(api, node)
    async with scheduler(api, settings_below(tmp_path)) as running:
        for name in names:
            add_pod(api, name, milli, gang="train", size=3)
        await until(lambda: not unbound(api))
        await until(lambda: not running.parts.worker.in_flight)
        await until(lambda: len(told(api, "Scheduled")) == len(names))  # Events are sent after the bindings
    assert len({stands(api, name).spec.node_name for name in names}) == 2
    found = told(api, "GangSpansNodes")
    assert len(found) == events
    assert all(each.startswith("gang train is on 2 nodes") for each in found)
    written = [json.loads(api.objects.get(f"{PODS}/{name}")["metadata"]["annotations"][ALLOCATION]) for name in names]
    assert [each["gang"] for each in written] == [{"namespace": "team", "name": "train", "size": 3}] * 3
