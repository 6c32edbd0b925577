"""Kubelet is asked for as few cards as pods that wait take, and for none that comes anyway."""

from __future__ import annotations

from partage_plugins.vocabulary import GPU, NodeName
from partage_scheduler.objects import ApiPod
from partage_scheduler.reservation import Demand
from partage_scheduler.reservation.demand import LOOKS
from support.objects import pod
from unit.scheduler.reservation.nodes_made import Pooled, kubelets, native, reserving
from unit.scheduler.test_deciding_on_pods import NOW


def wanted(
    stage: Pooled, *waiting: ApiPod, coming: dict[str, int] | None = None, unbound: dict[str, int] | None = None
) -> list[tuple[str, str, int]]:
    demand = Demand(stage.cycle, stage.rules)
    wants = demand.wants(waiting, _by_node(coming or {}), _by_node(unbound or {}), NOW)
    return [(want.pod.removeprefix("uid-"), want.node, want.cards) for want in wants]


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
