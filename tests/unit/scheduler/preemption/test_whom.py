"""Choice of victims: upstream's criteria in upstream's order, including what pods hold of cards."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from msgspec.structs import replace

from partage_plugins.api import NodeName, PodUid
from partage_scheduler.objects import ApiBudget, ApiPod
from partage_scheduler.preemption import NoVictims, Victims
from partage_scheduler.preemption import victims as finder
from support.objects import pod
from unit.scheduler.preemption.stage import GRACE_S, Preempted, budget, going_until, running
from unit.scheduler.test_deciding_on_pods import NOW

WEB = {"app": "web"}


def asking(one: ApiPod) -> ApiPod:
    """The same pod, with a card in its limits."""
    return replace(one, spec=replace(one.spec, containers=pod("a", milli=1000).spec.containers))


@dataclass(frozen=True)
class Case:
    """Nodes m and n have this many cards; the pods on them, and one pod to place."""

    says: str
    pods: tuple[ApiPod, ...]
    new: ApiPod
    leaves: tuple[str, list[str]] | None
    budgets: tuple[ApiBudget, ...] = ()
    m: int = 1
    n: int = 1


CASES = (
    Case(
        "a pod of a lower priority leaves",
        (running("low", "m", 0, 800), running("high", "n", 0, 800, priority=9)),
        pod("new", milli=500, priority=9),
        ("m", ["low"]),
    ),
    Case(
        "nobody of the same priority leaves", (running("a", "m", 0, 800, priority=5),), pod("new", milli=500), None, n=0
    ),
    Case(
        "a pod whose policy is never to preempt waits",
        (running("low", "m", 0, 800),),
        pod("new", milli=500, priority=9, preemptionPolicy="Never"),
        None,
        n=0,
    ),
    Case(
        "fewest budgets are violated, whatever else that costs",
        (
            running("spared", "m", 0, 800, labels=WEB),
            running("a", "n", 0, 400, priority=3),
            running("b", "n", 0, 400, priority=3),
        ),
        pod("new", milli=900, priority=9),
        ("n", ["a", "b"]),
        budgets=(budget("web", WEB),),
    ),
    Case(
        "a budget that allows an end is none in the way",
        (running("a", "m", 0, 800, labels=WEB), running("b", "n", 0, 800, priority=3)),
        pod("new", milli=900, priority=9),
        ("m", ["a"]),
        budgets=(budget("web", WEB, 1),),
    ),
    Case(
        "a pod that was counted by its budget already violates nothing",
        (running("a", "m", 0, 800, labels=WEB), running("b", "n", 0, 800, priority=3)),
        pod("new", milli=900, priority=9),
        ("m", ["a"]),
        budgets=(budget("web", WEB, disrupted=("a",)),),
    ),
    Case(
        "on one card or the other, the one without a budget leaves",
        (running("a", "m", 0, 800, labels=WEB), running("b", "m", 1, 800, priority=3)),
        pod("new", milli=900, priority=9),
        ("m", ["b"]),
        budgets=(budget("web", WEB),),
        m=2,
        n=0,
    ),
    Case(
        "where every way violates a budget, the cheapest way is taken",
        (running("a", "m", 0, 800, labels=WEB), running("b", "n", 0, 800, labels=WEB, priority=3)),
        pod("new", milli=900, priority=9),
        ("m", ["a"]),
        budgets=(budget("web", WEB),),
    ),
    Case(
        "then the highest of the victims is as low as can be",
        (
            running("a", "m", 0, 300, priority=1),
            running("b", "m", 0, 300, priority=1),
            running("c", "n", 0, 800, priority=2),
        ),
        pod("new", milli=900, priority=9),
        ("m", ["a", "b"]),
    ),
    Case(
        "then they are the fewest",
        (running("a", "m", 0, 400), running("b", "m", 0, 400), running("c", "n", 0, 800)),
        pod("new", milli=900, priority=9),
        ("n", ["c"]),
    ),
    Case(
        "then they hold the least of cards",
        (running("a", "m", 0, 800), running("b", "n", 0, 300, minute=0)),
        pod("new", milli=900, priority=9),
        ("n", ["b"]),
    ),
    Case(
        "then they are the youngest",
        (running("a", "m", 0, 800, minute=5), running("b", "n", 0, 800, minute=7)),
        pod("new", milli=900, priority=9),
        ("n", ["b"]),
    ),
    Case(
        "of one card's pods the youngest leaves",
        (
            running("a", "m", 0, 400, minute=1),
            running("b", "m", 0, 400, minute=9),
        ),
        pod("new", milli=500, priority=9),
        ("m", ["b"]),
        n=0,
    ),
    Case(
        "one large pod rather than three small ones",
        (
            running("large", "m", 0, 400, minute=1),
            *(running(f"small-{each}", "m", 0, 200, minute=5) for each in range(3)),
        ),
        pod("new", milli=400, priority=9),
        ("m", ["large"]),
        n=0,
    ),
    Case(
        "of two cards the one where fewer leave",
        (
            *(running(f"small-{each}", "m", 0, 200, minute=5) for each in range(5)),
            running("large", "m", 1, 1000, minute=1),
        ),
        pod("new", milli=1000, priority=9),
        ("m", ["large"]),
        m=2,
        n=0,
    ),
    Case(
        "as many cards as are asked for",
        (
            running("a", "m", 0, 900, minute=1),
            running("b", "m", 1, 600, minute=1),
            running("c", "m", 2, 500, minute=1),
        ),
        pod("new", milli=2000, priority=9),
        ("m", ["b", "c"]),
        m=3,
        n=0,
    ),
    Case(
        "for CPU as for cards",
        (running("a", "m", cpu="6"), running("b", "n", cpu="4", priority=2)),
        pod("new", cpu="5", priority=9),
        ("m", ["a"]),
    ),
    Case(
        "who leaves a card leaves its CPU too, and nobody else need",
        (running("a", "m", 0, 800, cpu="6"), running("b", "m", cpu="2", minute=9)),
        pod("new", milli=900, cpu="5", priority=9),
        ("m", ["a"]),
        n=0,
    ),
    Case(
        "a port that is taken",
        (
            running("a", "m", containers=[{"name": "x", "ports": [{"hostPort": 80, "containerPort": 80}]}]),
            running("b", "m", 0, 100, minute=9),
        ),
        pod("new", priority=9, containers=[{"name": "x", "ports": [{"hostPort": 80, "containerPort": 80}]}]),
        ("m", ["a"]),
        n=0,
    ),
    Case(
        "a pod that keeps others away",
        (
            running(
                "a",
                "m",
                labels=WEB,
                affinity={
                    "podAntiAffinity": {
                        "requiredDuringSchedulingIgnoredDuringExecution": [
                            {"topologyKey": "name", "labelSelector": {"matchLabels": {"app": "db"}}}
                        ]
                    }
                },
            ),
        ),
        pod("new", priority=9, labels={"app": "db"}),
        ("m", ["a"]),
        n=0,
    ),
    Case(
        "nobody, where it would be of no use",
        (running("a", "m", 0, 800), running("b", "m", cpu="1", priority=9)),
        pod("new", milli=500, cpu="8", priority=9),
        None,
        n=0,
    ),
    Case(
        "nobody on a node that is out of the question",
        (running("a", "m", 0, 800), running("b", "n", 0, 800, priority=2)),
        pod("new", milli=900, priority=9, nodeSelector={"name": "n"}),
        ("n", ["b"]),
    ),
    Case(
        "nobody, where somebody who is being deleted makes room enough",
        (running("a", "m", 0, 800, going=True), running("b", "n", 0, 100)),
        pod("new", milli=1000, priority=9),
        ("m", []),
    ),
)


@pytest.mark.parametrize("case", CASES, ids=[case.says for case in CASES])
def test_who_leaves(case: Case) -> None:
    stage = Preempted(*case.pods, budgets=case.budgets, m=case.m, n=case.n)
    before = stage.free("m")
    assert stage.chosen(case.new) == case.leaves
    assert stage.free("m") == before, "nothing is changed by looking"


def test_who_is_being_deleted_and_overdue_makes_no_room() -> None:
    late = going_until(running("a", "m", 0, 800), -31)
    stage = Preempted(late, running("b", "n", 0, 100), m=1, n=1)
    assert stage.chosen(pod("new", milli=1000, priority=9)) == ("n", ["b"])


def test_who_took_his_allocation_off_leaves_as_before() -> None:
    holder, new = asking(running("a", "m", 0, 1000)), pod("new", milli=1000, priority=9)
    bare = replace(holder, metadata=replace(holder.metadata, annotations={}))
    seen_before = Preempted(holder, m=1)
    seen_before.cluster.pod(bare)
    for stage in (seen_before, Preempted(bare, m=1)):
        assert stage.decides(new) is None
        assert stage.chosen(new) == ("m", ["a"])


YEARS_S = 315_360_000


def test_who_gave_himself_years_to_end_is_like_any_other_that_runs() -> None:
    slow, cheap, new = running("a", "m", 0, 1000), running("b", "n", 0, 900), pod("new", milli=1000, priority=9)
    assert Preempted(going_until(slow, GRACE_S), cheap, m=1, n=1).chosen(new) == ("m", [])
    for seconds in (GRACE_S + 1, YEARS_S):
        stage = Preempted(going_until(slow, seconds), cheap, m=1, n=1)
        assert stage.chosen(new) == Preempted(slow, cheap, m=1, n=1).chosen(new) == ("n", ["b"])
        assert Preempted(going_until(slow, seconds), m=1).chosen(new) == ("m", ["a"])


def test_who_was_sent_away_is_waited_for_until_that_is_seen() -> None:
    stage, new = Preempted(going_until(running("a", "m", 0, 1000), YEARS_S), m=1), pod("new", milli=1000, priority=9)
    stage.finder.sent_away((PodUid("uid-a"),))
    assert stage.chosen(new) == ("m", [])
    stage.finder.stays(PodUid("uid-a"))
    assert stage.chosen(new) == ("m", ["a"])


@pytest.mark.parametrize(
    ("victim", "grace_s"),
    [
        (running("a", "m"), None),
        (running("a", "m", terminationGracePeriodSeconds=GRACE_S), None),
        (running("a", "m", terminationGracePeriodSeconds=0), None),
        (running("a", "m", terminationGracePeriodSeconds=YEARS_S), GRACE_S),
        (going_until(running("a", "m"), YEARS_S), GRACE_S),
    ],
    ids=["as usual", "as long as may be", "none", "years", "years, being deleted"],
)
def test_a_victim_has_the_grace_that_it_asks_for_within_a_bound(victim: ApiPod, grace_s: int | None) -> None:
    assert Preempted(victim, m=1).finder.grace_of(victim) == grace_s


def test_why_nobody_leaves_is_said_in_upstream_s_grammar() -> None:
    stage = Preempted(running("a", "m", 0, 100), running("b", "n", cpu="1", priority=9), m=1, n=0)
    found = stage.finder.victims(pod("new", milli=2000, priority=9, nodeSelector={"name": "m"}), NOW)
    assert isinstance(found, NoVictims)
    assert str(found) == (
        "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_on_a_node_that_somebody_else_proposes_his_victims_are_among_ours() -> None:
    pods = (running("a", "m", 0, 400), running("b", "m", 1, 100), running("c", "m", cpu="1"))
    stage, new = Preempted(*pods, m=2, n=0), pod("new", milli=2000, priority=9)

    def names(*chosen: PodUid) -> list[str] | None:
        found = stage.finder.victims_on(new, NodeName("m"), NOW, chosen=chosen)
        return None if found is None else sorted(each.name for each in found.pods)

    assert names() == ["a", "b"]
    assert names(pods[2].uid) == ["a", "b", "c"]


def test_of_many_nodes_a_part_is_looked_at_each_time_and_at_last_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "EXAMINED", 2)
    pods = [running(f"on-{name}", name, 0, 800, priority=9) for name in "abcde"]
    stage = Preempted(*pods, running("low", "e", cpu="1"), running("lower", "e", 1, 900), a=1, b=1, c=1, d=1, e=2)
    new = pod("new", milli=900, priority=9)
    found = [stage.finder.victims(new, NOW) for _ in range(3)]
    assert [isinstance(each, NoVictims) and each.is_partial for each in found] == [True, True, False]
    assert isinstance(found[2], Victims)
    assert found[2].node == "e"


def test_where_a_pod_has_hopes_is_always_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "EXAMINED", 1)
    stage = Preempted(*(running(f"on-{name}", name, 0, 800) for name in "abc"), a=1, b=1, c=1)
    new = pod("new", milli=900, priority=9)
    first = stage.victims(new)
    stage.keep(new, first)
    stage.finder.sent_away(each.uid for each in first.pods)
    again = stage.victims(new)
    assert (again.node, again.pods) == (first.node, ())
