"""A reservation leaves when no pod has had its card for a while or it came to nothing; then no pod gets the card."""

from __future__ import annotations

from partage_plugins.vocabulary import GPU, NodeName
from partage_scheduler.reservation import Upkeep
from partage_scheduler.reservation.upkeep import PATIENCE_S
from support.objects import given, pod
from unit.scheduler.cluster.cards import granted
from unit.scheduler.reservation.nodes_made import Pooled, kubelets, reserving
from unit.scheduler.test_deciding_on_pods import NOW

QUIET_S = 10.0
CARD = "partage-cards/card-1"
TENANT = pod("tenant", node="m", annotations=given(granted("uid-tenant", "m", 0, 500)))


def pools_of(stage: Pooled) -> list[str]:
    part = stage.cluster.inventory(NodeName("m")).part(GPU)
    assert part is not None
    return [card.pool for card in part.cards]


class Kept:
    """An upkeep and what there is."""

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
    kept.stage.cluster.node(kubelets("m", 3, reserved=("card-1",)))  # the advertiser does not know yet
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
