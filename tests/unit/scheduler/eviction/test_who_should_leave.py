"""Which pods should leave, since when, and when that is enforced."""

from __future__ import annotations

import pytest

from partage_plugins.api import CardHealth, HealthCause
from partage_scheduler.eviction import LOST, PAUSED, EvictionSettings, Notices
from support.objects import pod
from unit.scheduler.cluster.cards import carded
from unit.scheduler.preemption.stage import Preempted, running

BOTH = EvictionSettings(lost=True, paused=True, after_s=60.0)
REST = CardHealth.degraded(HealthCause.PAUSED, "paused: driver 580")
SOUNDS_ALIKE = CardHealth.degraded(HealthCause.OTHER, "paused: by a power cap that is over soon")


def stage() -> Preempted:
    """Three cards, two of which have a pod, and a pod without cards."""
    return Preempted(running("a", "m", 0, 500), running("b", "m", 1, 500), running("c", "m", cpu="1"), m=3)


def seen(leaving: Notices, now: float) -> dict[str, tuple[str, bool, bool]]:
    return {each.pod.name: (each.trouble.reason, each.is_news, each.is_due) for each in leaving.look(now)}


def test_nobody_leaves_healthy_or_merely_degraded_cards() -> None:
    made = stage()
    leaving = Notices(made.cluster, BOTH)
    assert not seen(leaving, 0.0)
    made.cluster.node(carded("m", "degraded: xid 63", "ok", "ok"))
    assert not seen(leaving, 0.0)


def test_who_is_on_a_lost_card_is_told_at_once_and_due_after_the_delay() -> None:
    made = stage()
    made.cluster.node(carded("m", "lost", "ok", "lost"))
    leaving = Notices(made.cluster, BOTH)
    assert seen(leaving, 10.0) == {"a": (LOST, True, False)}
    assert seen(leaving, 69.0) == {"a": (LOST, False, False)}
    assert seen(leaving, 70.0) == {"a": (LOST, False, True)}


def test_who_took_his_allocation_off_leaves_a_lost_card_too() -> None:
    made = stage()
    made.cluster.pod(pod("a", node="m"))
    made.cluster.pod(pod("never-verified", node="m", milli=10))
    made.cluster.node(carded("m", "lost", "ok", "ok"))
    assert seen(Notices(made.cluster, BOTH), 0.0) == {"a": (LOST, True, False), "never-verified": (LOST, True, False)}


def test_who_has_cards_leaves_a_node_that_rests_and_others_stay() -> None:
    made = stage()
    made.cluster.node(carded("m", REST, REST, REST))
    leaving = Notices(made.cluster, BOTH)
    assert seen(leaving, 0.0) == {"a": (PAUSED, True, False), "b": (PAUSED, True, False)}
    assert {due for _, _, due in seen(leaving, 60.0).values()} == {True}


def test_what_is_told_is_who_asks_for_the_rest() -> None:
    made = stage()
    made.cluster.node(carded("m", REST, "ok", "ok"))
    (notice,) = Notices(made.cluster, BOTH).look(0.0)
    assert notice.trouble.words == "its node's cards are to rest: driver 580"


@pytest.mark.parametrize("health", [SOUNDS_ALIKE, str(SOUNDS_ALIKE)])
def test_a_health_that_only_begins_like_a_pause_drives_nobody_away(health: CardHealth | str) -> None:
    made = stage()
    made.cluster.node(carded("m", health, health, health))
    assert not seen(Notices(made.cluster, BOTH), 0.0)


@pytest.mark.parametrize(("settings", "due"), [(EvictionSettings(after_s=0), False), (BOTH, True)])
def test_it_is_enforced_only_where_the_operator_wants_it(settings: EvictionSettings, *, due: bool) -> None:
    made = stage()
    made.cluster.node(carded("m", "lost", REST, "ok"))
    leaving = Notices(made.cluster, settings)
    leaving.look(0.0)
    assert {name: is_due for name, (_, _, is_due) in seen(leaving, 999.0).items()} == {"a": due, "b": due}


def test_a_card_that_recovers_in_time_costs_nobody_his_place() -> None:
    made = stage()
    leaving = Notices(made.cluster, BOTH)
    for number, health in enumerate(("lost", "ok", "lost"), start=1):
        made.cluster.node(carded("m", health, "ok", "ok", version=number))
        seen(leaving, 50.0 * number)
    assert seen(leaving, 200.0) == {"a": (LOST, False, False)}
    assert seen(leaving, 210.0) == {"a": (LOST, False, True)}


def test_another_trouble_is_another_clock() -> None:
    made = stage()
    leaving = Notices(made.cluster, BOTH)
    made.cluster.node(carded("m", REST, "ok", "ok", version=1))
    seen(leaving, 0.0)
    made.cluster.node(carded("m", "lost", "ok", "ok", version=2))
    assert seen(leaving, 60.0) == {"a": (LOST, True, False)}


def test_who_is_being_deleted_is_left_in_peace() -> None:
    made = Preempted(running("a", "m", 0, 500, going=True), m=1)
    made.cluster.node(carded("m", "lost"))
    assert not seen(Notices(made.cluster, BOTH), 0.0)
