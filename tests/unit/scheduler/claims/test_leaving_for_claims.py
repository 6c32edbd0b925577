"""Preemption for a pod whose claim does not fit: what only the victims used is free once they are gone."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from partage_scheduler.objects import ApiPod, ApiResourceClaim
from partage_scheduler.objects.claims import Consumer
from partage_scheduler.preemption import Budgets, NoVictims, VictimFinder
from support.claim_objects import request
from unit.scheduler.claims.made import NOW, Stage, claim, claimable, using

HALF = request(share="500", memory="1Gi")


class Crowded(Stage):
    """One card with two pods of priority 0, each of which has half of it."""

    def __init__(self) -> None:
        super().__init__(claimable("n", 1))
        self.finder = VictimFinder(self.cycle, Budgets(), utc=lambda: 0.0, longest_grace_s=60)
        for name in ("a", "b"):
            self.runs(using(name, f"of-{name}"), claim(f"of-{name}", HALF))

    def victims(self, pod: ApiPod) -> list[str] | None:
        """The victims' names, or None if no eviction would help."""
        found = self.finder.victims(pod, NOW)
        if isinstance(found, NoVictims):
            return None
        self.cluster.keep(pod, found.decision)
        return [each.name for each in found.pods]


def high(stage: Crowded, written: ApiResourceClaim) -> ApiPod:
    stage.claims.put(written)
    return using("high", written.name, priority=1000)


@pytest.fixture
def crowded() -> Crowded:
    return Crowded()


def test_as_few_leave_as_it_takes(crowded: Crowded) -> None:
    assert len(crowded.victims(high(crowded, claim("half", HALF))) or ()) == 1


def test_all_leave_where_it_takes_all(crowded: Crowded) -> None:
    assert sorted(crowded.victims(high(crowded, claim("whole", request(share="1000")))) or ()) == ["a", "b"]


def test_nobody_leaves_where_it_would_not_help(crowded: Crowded) -> None:
    assert crowded.victims(high(crowded, claim("two", request(share="100", count=2)))) is None


def test_a_claim_that_others_have_too_ends_with_the_last_of_them(crowded: Crowded) -> None:
    """A claim that another pod of a high priority uses too frees nothing when one of its pods leaves."""
    shared = crowded.claims.get("team", "of-a")
    assert shared is not None
    crowded.cluster.pod(using("keeper", "of-a", priority=2000, node="n"))
    both = (*shared.status.reserved_for, Consumer(resource="pods", uid="uid-keeper"))
    crowded.claims.put(replace(shared, status=replace(shared.status, reserved_for=both)))
    assert crowded.victims(high(crowded, claim("half", HALF))) == ["b"]


def test_while_the_claim_of_one_that_left_still_stands_nobody_else_has_to_leave(crowded: Crowded) -> None:
    pod = high(crowded, claim("half", HALF))
    leaving = crowded.victims(pod)
    assert leaving is not None
    (gone,) = leaving
    crowded.cluster.pod_gone(using(gone).uid)
    assert "Insufficient GPU share" in crowded.says(pod)
    assert crowded.victims(pod) == []
    ended = crowded.claims.get("team", f"of-{gone}")
    assert ended is not None
    assert crowded.claims.remove(ended)
    assert crowded.binds(pod).decision.node == "n"


def test_looking_for_victims_changes_nothing(crowded: Crowded) -> None:
    for _ in range(3):
        crowded.finder.victims(high(crowded, claim("whole", request(share="1000"))), NOW)
    crowded.claims.put(claim("half", HALF))
    assert "Insufficient GPU share" in crowded.says(using("other", "half"))
