"""Few cards, fewer cards than before, and cards that are degraded or lost."""

from __future__ import annotations

from partage_scheduler.decision import Decision
from support.objects import given, pod
from unit.scheduler.cluster.cards import Cards, carded, granted
from unit.scheduler.cluster.stage import FREED, INVENTORY


def stage_of(*healths: str) -> Cards:
    stage = Cards()
    stage.cluster.node(carded("n", *healths))
    stage.cluster.heartbeat("n", 0.0, 0.0)
    return stage


def test_degraded_cards_and_lost_ones_take_no_new_pods_and_what_is_on_them_stays() -> None:
    stage = stage_of("ok", "ok")
    stage.cluster.pod(pod("a", node="n", annotations=given(granted("uid-a", "n", 0, 600))))
    assert stage.left("n") == [(400, 6), (1000, 16)]
    for ill in ("degraded: xid 63", "lost"):
        assert stage.cluster.node(carded("n", ill, "ok")) == INVENTORY
        chosen = stage.decide(pod("new", milli=100))
        assert isinstance(chosen, Decision)
        assert "n-1" in str(chosen.grants)
        assert stage.decide(pod("new", milli=2000)) is None
    stage.cluster.node(carded("n", "ok", "ok"))
    assert stage.left("n") == [(400, 6), (1000, 16)]


def test_an_inventory_that_shrinks_below_what_is_bound_forgets_nobody() -> None:
    stage = stage_of("ok", "ok")
    for name, place in (("a", 0), ("b", 1)):
        allocation = granted(f"uid-{name}", "n", place, 700)
        stage.cluster.pod(pod(name, node="n", annotations=given(allocation)))
    stage.cluster.node(carded("n", "ok"))
    assert stage.left("n") == [(300, 4)]
    assert stage.cluster.pod_gone(pod("b").uid) == FREED
    stage.cluster.node(carded("n", "ok", "ok"))
    assert stage.left("n") == [(300, 4), (1000, 16)]


def test_more_than_there_is_leaves_less_than_nothing_and_nobody_fits() -> None:
    stage = stage_of("ok")
    for name in ("a", "b"):
        allocation = granted(f"uid-{name}", "n", 0, 700)
        stage.cluster.pod(pod(name, node="n", annotations=given(allocation)))
    assert stage.left("n")[0][0] == -400
    assert stage.decide(pod("new", milli=1)) is None
    stage.cluster.pod_gone(pod("b").uid)
    assert stage.left("n")[0][0] == 300
