"""Reading annotations and Leases of many nodes, valid and invalid ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_base.kube import ApiServer, Lease, LeaseSpec, Meta, Node, leases_path, micro_time, nodes_path
from partage_cli.nodes.command import cluster
from partage_cli.nodes.reports import heartbeat, of_cluster
from partage_plugins.api import Card, CardId
from partage_plugins.api.gpu import Pool
from partage_plugins.api.inventory import Ready
from partage_plugins.api.keys import INVENTORY
from support.fake_api import FakeApi
from support.objects import lease_body, node_body, of_cards, written
from unit.cli.doctor.made import CARDS, FIRST, SECOND, inventory

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def node(name: str, text: str | None) -> Node:
    return Node(metadata=Meta(name=name, annotations={} if text is None else {INVENTORY: text}))


def lease(name: str, age_s: float, *, lasts_s: int = 40) -> Lease:
    at = micro_time(NOW - timedelta(seconds=age_s))
    return Lease(metadata=Meta(name=name), spec=LeaseSpec(lease_duration_seconds=lasts_s, renew_time=at))


def ids(*cards: Card) -> list[str]:
    (report,) = of_cluster([node("a", inventory(*cards))], [], NOW).nodes
    return [card.id for card in report.cards]


def test_nodes_come_by_their_names_with_what_they_tell() -> None:
    report = of_cluster([node("b", inventory()), node("a", inventory(CARDS[1]))], [], NOW)
    assert [(each.node, each.driver, len(each.cards)) for each in report.nodes] == [
        ("a", "580.65.06", 1),
        ("b", "580.65.06", 2),
    ]
    assert report.nodes[0].ready.crishim
    assert not report.nodes[0].ready.broker


def test_one_inventory_that_cannot_be_read_costs_its_own_node() -> None:
    report = of_cluster([node("a", '{"v":1,"kinds":{"gpu":[]}}'), node("b", inventory()), node("c", "")], [], NOW)
    assert [each.node for each in report.nodes] == ["b"]
    assert "$.kinds.gpu" in report.faults["a"]
    assert set(report.faults) == {"a", "c"}


def test_nodes_without_an_inventory_are_counted_apart() -> None:
    report = of_cluster([node("a", None), node("b", inventory()), node("c", None)], [], NOW)
    assert report.without_inventory == ("a", "c")
    assert not report.faults


def test_a_node_with_devices_of_other_kinds_alone_has_no_cards() -> None:
    (report,) = of_cluster([node("a", '{"v":1,"kinds":{"fpga":{"boards":["f0"]}}}')], [], NOW).nodes
    assert (report.cards, report.driver) == ((), None)


@pytest.mark.parametrize(
    ("age_s", "lasts_s", "stale"), [(40, 40, False), (41, 40, True), (41, 0, True), (50, 60, False)]
)
def test_a_heartbeat_is_stale_after_as_long_as_it_says(age_s: float, lasts_s: int, *, stale: bool) -> None:
    beat = heartbeat(lease("a", age_s, lasts_s=lasts_s), NOW)
    assert beat is not None
    assert (beat.age_s, beat.stale) == (age_s, stale)


@pytest.mark.parametrize("text", ["", "now", "2026-13-01T00:00:00Z", "9999-12-31T23:59:59-23:00"])
def test_a_heartbeat_of_no_time_is_none(text: str) -> None:
    assert heartbeat(Lease(spec=LeaseSpec(renew_time=text)), NOW) is None
    assert heartbeat(None, NOW) is None


def test_heartbeats_are_found_by_the_nodes_name() -> None:
    report = of_cluster([node("a", inventory()), node("b", inventory())], [lease("b", 5), lease("c", 1)], NOW)
    assert [None if each.heartbeat is None else each.heartbeat.age_s for each in report.nodes] == [None, 5]


def test_instances_stand_behind_their_gpu_and_gpus_by_their_number() -> None:
    first, second = replace(CARDS[0], index=8), replace(CARDS[1], index=5)
    one, two = (replace(CARDS[0], id=CardId(f"MIG-{n}"), index=n, parent=SECOND, mig_profile="1g") for n in (7, 2))
    assert ids(one, first, two, second) == [SECOND, "MIG-2", "MIG-7", FIRST]


def test_instances_without_their_gpu_stay_together() -> None:
    one, two = (replace(CARDS[0], id=CardId(f"MIG-{n}"), index=n, parent=CardId("GPU-x")) for n in (0, 5))
    assert ids(two, one) == ["MIG-0", "MIG-5"]


@given(st.text(max_size=60) | st.text('{}[]":,v1kindsgpu', max_size=60))
def test_no_annotation_is_too_hostile(text: str) -> None:
    report = of_cluster([node("a", text)], [], NOW)
    assert len(report.nodes) + len(report.faults) == 1


async def test_the_cluster_is_asked_for_all_nodes_or_for_one(api: FakeApi, server: ApiServer) -> None:
    for name in ("a", "b"):
        api.objects.create(nodes_path(), node_body(name, inventory()))
    api.objects.create(leases_path("partage-system"), lease_body("b"))
    everyone = await cluster(server, namespace="partage-system", node=None)
    alone = await cluster(server, namespace="partage-system", node="b")
    assert [[each.node for each in report.nodes] for report in (everyone, alone)] == [["a", "b"], ["b"]]
    assert [None if each.heartbeat is None else each.heartbeat.stale for each in everyone.nodes] == [None, False]


def why_not(ready: Ready, *, age_s: float = 1.0, pools: tuple[Pool, ...] = ("shared",), has_lease: bool = True) -> str:
    cards = tuple(replace(CARDS[0], pool=pool, id=CardId(f"GPU-{place}")) for place, pool in enumerate(pools))
    text = written(of_cards(cards, ready=ready))
    return of_cluster([node("n1", text)], [lease("n1", age_s)] if has_lease else [], NOW).why_not("n1")


def test_why_a_node_is_not_in_force_is_said_by_what_its_advertiser_says_and_when() -> None:
    well = Ready(crishim=True, broker=True)
    away = Ready(broker=True, why="kubelet does not speak through crishim")
    assert not why_not(well)
    assert why_not(away) == "kubelet does not speak through crishim"
    assert why_not(Ready(crishim=True)) == "broker not in force", "an older advertiser says no more"
    assert why_not(Ready()) == "crishim and broker not in force"
    assert why_not(well, has_lease=False) == "its advertiser has no heartbeat"
    assert why_not(away, age_s=301) == "its advertiser was last heard of 5m ago; kubelet does not speak through crishim"


def test_a_node_whose_cards_are_all_for_claims_needs_no_crishim() -> None:
    assert not why_not(Ready(broker=True, why="crishim gives no sign of life"), pools=("dra", "dra"))
    assert why_not(Ready(broker=True), pools=("dra", "shared")) == "crishim not in force"
    assert why_not(Ready(), pools=("dra",)) == "broker not in force"


def test_a_node_that_says_nothing_or_nothing_that_can_be_read_is_not_in_force() -> None:
    report = of_cluster([node("n1", None), node("n2", "{")], [], NOW)
    assert report.why_not("n1") == "its advertiser has not said what it has"
    assert report.why_not("n2").startswith("its inventory can't be read: inventory: ")
