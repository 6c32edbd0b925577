"""Cards are reserved from kubelet for pending pods, and returned when no pod needs them."""

from __future__ import annotations

from typing import Any

import msgspec

from partage_plugins.api import GPU, NodeName
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.reservation import Reservation, Upkeep, body_of, wants
from partage_scheduler.reservation.demand import LOOKS
from partage_scheduler.reservation.pods import RESOURCE
from partage_scheduler.reservation.upkeep import PATIENCE_S
from support.gpu_fleet import card
from support.objects import given, node, of_cards, pod
from unit.scheduler.cluster.cards import granted
from unit.scheduler.test_deciding_on_pods import NOW, Stage


def kubelets(name: str, cards: int, *, reserved: tuple[str, ...] = (), reservable: bool = True) -> ApiNode:
    """A node whose first cards are held by these pods of `partage-cards`; its other cards are kubelet's."""
    held = [card(f"{name}-{place}", reservation=f"partage-cards/{each}") for place, each in enumerate(reserved)]
    rest = [card(f"{name}-{place}", pool="kubelet") for place in range(len(reserved), cards)]
    inventory = of_cards((*held, *rest), reservable=reservable)
    return node(name, inventory, labels={"name": name}, **dict[str, Any]({RESOURCE: str(cards)}))


def native(name: str, on: str, count: int = 1) -> ApiPod:
    container = {"name": "main", "resources": {"limits": {RESOURCE: str(count)}}}
    return pod(name, node=on, schedulerName="default-scheduler", containers=[container])


def reserving(name: str, on: str, *, bound: bool = True, going: bool = False, phase: str = "") -> ApiPod:
    """A reservation pod as the API server has it."""
    body = body_of(name, NodeName(on), image="pause")
    body["metadata"] |= {"uid": f"uid-{name}"}
    if going:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    body["spec"] |= {"nodeName": on if bound else ""}
    body["status"] = {"phase": phase or ("Running" if bound else "Pending")}
    return msgspec.convert(body, ApiPod)


class Pooled(Stage):
    """A scheduler without its I/O, over nodes whose cards are kubelet's."""

    def __init__(self, *nodes: ApiNode, pods: tuple[ApiPod, ...] = ()) -> None:
        super().__init__()
        for each in nodes:
            self.cluster.node(each)
            self.cluster.heartbeat(each.name, NOW, NOW)
        for one in pods:
            self.cluster.pod(one)

    def reservations(self, *pods: ApiPod) -> list[Reservation]:
        return [Reservation.of(each) for each in pods]


def wanted(
    stage: Pooled, *waiting: ApiPod, coming: dict[str, int] | None = None, unbound: dict[str, int] | None = None
) -> list[tuple[str, str, int]]:
    found = wants(stage.cycle, waiting, _by_node(coming or {}), _by_node(unbound or {}), NOW)
    return [(want.pod.removeprefix("uid-"), want.node, want.cards) for want in found]


def _by_node(counts: dict[str, int]) -> dict[NodeName, int]:
    return {NodeName(name): count for name, count in counts.items()}


def test_a_pod_that_waits_wants_the_fewest_cards_with_which_it_fits() -> None:
    stage = Pooled(kubelets("m", 4))
    assert wanted(stage, pod("a", milli=500)) == [("a", "m", 1)]
    assert wanted(stage, pod("a", milli=3000)) == [("a", "m", 3)]
    assert wanted(stage, pod("a", milli=5000)) == []


def test_pods_that_fit_on_one_card_want_one_together() -> None:
    stage = Pooled(kubelets("m", 4))
    tenths = [pod(str(number), milli=400) for number in range(5)]
    assert wanted(stage, *tenths) == [("0", "m", 1), ("2", "m", 1), ("4", "m", 1)]


def test_cards_that_native_pods_have_are_not_asked_for() -> None:
    stage = Pooled(kubelets("m", 2), pods=(native("x", "m"),))
    assert wanted(stage, pod("a", milli=1000), pod("b", milli=1000)) == [("a", "m", 1)]
    stage.cluster.pod(native("y", "m"))
    assert wanted(stage, pod("a", milli=1000)) == []


def test_the_node_that_is_fullest_comes_first() -> None:
    stage = Pooled(kubelets("m", 2), kubelets("n", 2), pods=(native("x", "n"),))
    assert wanted(stage, pod("a", milli=100)) == [("a", "n", 1)]


def test_what_keeps_a_pod_from_a_node_keeps_its_cards_with_kubelet() -> None:
    stage = Pooled(kubelets("m", 2), kubelets("n", 2))
    assert wanted(stage, pod("a", milli=100, nodeSelector={"name": "n"})) == [("a", "n", 1)]
    assert wanted(stage, pod("a", milli=100, cpu="9")) == []
    assert wanted(stage, pod("a", milli=100, annotations={"partage.dev/models": "H100"})) == []


def test_a_pod_for_which_there_is_room_or_that_asks_for_no_card_wants_none() -> None:
    stage = Pooled(kubelets("m", 2, reserved=("card-1",)))
    assert wanted(stage, pod("a", milli=1000), pod("b", cpu="1")) == []
    assert wanted(stage, pod("a", milli=1000), pod("b", milli=1)) == [("b", "m", 1)]


def test_cards_that_come_anyway_are_not_asked_for_again() -> None:
    unbound = Pooled(kubelets("m", 3))
    assert wanted(unbound, pod("a", milli=1000), coming={"m": 1}, unbound={"m": 1}) == []
    assert wanted(unbound, pod("a", milli=3000), coming={"m": 1}, unbound={"m": 1}) == [("a", "m", 2)]
    bound = Pooled(kubelets("m", 3), pods=(reserving("card-1", "m"),))
    assert wanted(bound, pod("a", milli=3000), coming={"m": 1}) == [("a", "m", 2)]
    assert wanted(bound, pod("a", milli=4000), coming={"m": 1}) == []


def test_where_a_reservation_would_share_no_card_none_is_asked_for() -> None:
    assert wanted(Pooled(kubelets("m", 2, reservable=False)), pod("a", milli=1)) == []


def test_looking_changes_nothing() -> None:
    stage = Pooled(kubelets("m", 2, reserved=("card-1",)))
    before = stage.cluster.inventory(NodeName("m"))
    wanted(stage, pod("a", milli=1000), pod("b", milli=1000), coming={"m": 1})
    assert stage.cluster.inventory(NodeName("m")) is before
    assert stage.place(pod("c", milli=1000)) == ["m"]
    assert "m" not in stage.place(pod("d", milli=1000))


def test_so_much_is_looked_at_in_one_go_and_no_more() -> None:
    stage = Pooled(*(kubelets(f"n{number:03}", 2) for number in range(2 * LOOKS)))
    hopeless = [pod(str(number), milli=3000) for number in range(3)]
    assert wanted(stage, *hopeless, pod("late", milli=1)) == []
    assert GPU.name in stage.cycle.request(hopeless[0]).kinds


QUIET_S = 10.0
CARD = "partage-cards/card-1"
TENANT = pod("tenant", node="m", annotations=given(granted("uid-tenant", "m", 0, 500)))


def pools_of(stage: Pooled) -> list[str]:
    part = stage.cluster.inventory(NodeName("m")).part(GPU)
    assert part is not None
    return [card.pool for card in part.cards]


class Kept:
    """An upkeep, with the cluster and the pods that it reviews."""

    def __init__(self, *reservations: str) -> None:
        self.stage = Pooled(kubelets("m", 2, reserved=reservations))
        self.upkeep = Upkeep(self.stage.cluster, quiet_s=QUIET_S)
        self.pods = {name: reserving(name, "m") for name in reservations}

    def leaving(self, at_s: float) -> list[str]:
        review = self.upkeep.review(self.stage.reservations(*self.pods.values()), NOW + at_s)
        self.stage.cluster.withhold(review.withheld)
        return [each.name for each in review.leave]


def test_a_card_goes_back_when_no_pod_had_it_for_a_while() -> None:
    kept = Kept("card-1")
    assert kept.leaving(0) == []
    assert kept.leaving(QUIET_S - 1) == []
    assert kept.leaving(QUIET_S) == [CARD]


def test_a_card_that_a_pod_has_stays_and_the_time_begins_anew_after_it() -> None:
    kept = Kept("card-1")
    assert kept.leaving(0) == []
    kept.stage.cluster.pod(TENANT)
    assert kept.leaving(QUIET_S + 1) == []
    kept.stage.cluster.pod_gone(TENANT.uid)
    assert kept.leaving(QUIET_S + 2) == []
    assert kept.leaving(2 * QUIET_S + 2) == [CARD]


def test_a_pod_that_is_only_assumed_on_it_holds_it_too() -> None:
    kept = Kept("card-1")
    kept.leaving(0)
    assert kept.stage.place(pod("a", milli=1)) == ["m"]
    assert kept.leaving(QUIET_S + 1) == []


def test_from_the_moment_it_leaves_no_pod_gets_its_card_for_good() -> None:
    kept = Kept("card-1")
    kept.leaving(0)
    assert kept.leaving(QUIET_S) == [CARD]
    assert pools_of(kept.stage) == ["kubelet", "kubelet"]
    kept.stage.cluster.node(kubelets("m", 3, reserved=("card-1",)))  # the advertiser has not noticed yet
    assert pools_of(kept.stage) == ["kubelet", "kubelet", "kubelet"]
    assert kept.leaving(QUIET_S + 1) == [CARD]  # until the API server has deleted it
    del kept.pods["card-1"]
    assert kept.leaving(QUIET_S + 2) == []
    assert pools_of(kept.stage) == ["kubelet", "kubelet", "kubelet"]


def test_a_reservation_that_others_deleted_is_withheld_at_once() -> None:
    for there in ({}, {"card-1": reserving("card-1", "m", going=True)}):
        kept = Kept("card-1")
        kept.pods = dict(there)
        assert kept.leaving(0) == []
        assert pools_of(kept.stage) == ["kubelet", "kubelet"]


def test_one_that_has_ended_or_is_told_of_by_no_advertiser_leaves() -> None:
    ended = Kept("card-1")
    ended.pods = {"card-1": reserving("card-1", "m", phase="Failed")}
    assert ended.leaving(0) == [CARD]
    for bound in (True, False):
        untold = Kept()
        untold.pods = {"card-1": reserving("card-1", "m", bound=bound)}
        assert untold.leaving(0) == []
        assert untold.leaving(PATIENCE_S - 1) == []
        assert untold.leaving(PATIENCE_S) == [CARD]


def test_cards_that_come_are_counted_where_they_are_to_be() -> None:
    stage = Pooled(kubelets("m", 4, reserved=("card-1",)))
    pods = [reserving("card-1", "m"), reserving("card-2", "m"), reserving("card-3", "m", bound=False)]
    review = Upkeep(stage.cluster, quiet_s=QUIET_S).review(stage.reservations(*pods), NOW)
    assert (dict(review.coming), dict(review.unbound)) == ({"m": 2}, {"m": 1})
