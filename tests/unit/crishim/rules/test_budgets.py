"""Each container that uses a budget gets its grants, and the node counts them once."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partage_crishim.decisions import Ending
from partage_plugins.api import GPU
from partage_plugins.api.keys import CONTAINER
from unit.crishim.rules.allocations import CARD, GIB, OTHER_CARD, Document, allocation, grant, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage

USE = {"budget": "pod"}


def of_budget(uid: str, *grants: Document, container: str, gen: int = 1, **changes: Any) -> Create:
    """One of the containers a, b and c, which use one budget."""
    using = {name: {"gpu": USE} for name in "abc"}
    document = allocation(pod=uid, gen=gen, crit=["budgets"], budgets={"pod": {"gpu": list(grants)}}, containers=using)
    return Create(uid=uid, container=container, annotations=signed(document), **changes)


def alone(uid: str, *grants: Document) -> Create:
    return Create(uid=uid, annotations=signed(allocation(*grants, pod=uid)))


LARGE = grant(share=600, memory=50 * GIB)


def test_two_containers_of_a_budget_fit_beside_the_rest_of_the_card(crishim: Crishim) -> None:
    for name in "ab":
        crishim.rewrite(of_budget("x", LARGE, container=name))
    crishim.rewrite(alone("y", grant(share=400, memory=30 * GIB)))
    crishim.rewrite(of_budget("x", LARGE, container="c"))
    assert "has not enough compute left" in crishim.refusal(alone("z", grant(share=1, memory=0)))
    assert "has not enough memory left" in crishim.refusal(alone("z", grant(share=0, memory=1)))


def test_a_container_is_told_its_grants_and_whose_they_are(stage: Stage, crishim: Crishim) -> None:
    seen = crishim.rewrite(of_budget("x", LARGE, container="a"))
    record = json.loads(seen.annotations[CONTAINER.encode()])
    assert (record["grants"], record["budgets"]) == ({"gpu": [LARGE]}, {"gpu": "pod"})
    container, granted = stage.fake.asked[0]
    assert container.budgets == {GPU.name: "pod"}
    assert json.loads(bytes(granted.grants[GPU.name])) == [LARGE]  # type: ignore[call-overload]


def test_without_a_budget_a_container_is_told_of_none(stage: Stage, crishim: Crishim) -> None:
    seen = crishim.rewrite(alone("x", LARGE))
    assert "budgets" not in json.loads(seen.annotations[CONTAINER.encode()])
    assert stage.fake.asked[0][0].budgets == {}


@pytest.mark.parametrize("exited", [True, False])
def test_one_container_may_restart_while_another_runs(stage: Stage, crishim: Crishim, *, exited: bool) -> None:
    for name in "ab":
        crishim.rewrite(of_budget("x", LARGE, container=name))
    first = of_budget("x", LARGE, container="a")
    stage.create(crishim.held_back(first).message, first, exited=exited)
    crishim.rewrite(of_budget("x", LARGE, container="a", attempt=1))
    stage.crishim().rewrite(alone("y", grant(share=400, memory=30 * GIB)))


def test_a_budget_is_held_until_the_last_of_its_containers_is_gone(stage: Stage, crishim: Crishim) -> None:
    for name in "ab":
        crishim.rewrite(of_budget("x", LARGE, container=name))
    for name in "ab":
        assert "has not enough compute left" in stage.crishim().refusal(alone("y", grant(share=401)))
        del stage.runtime.listed[f"c-x-{name}-0"]
    stage.crishim().rewrite(alone("y", grant(share=401)))


def test_what_is_being_created_counts_once_with_what_runs(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(of_budget("x", LARGE, container="a"))
    creating = [stage.crishim().held_back(of_budget("x", LARGE, container=name)) for name in "bc"]
    crishim.rewrite(alone("y", grant(share=400, memory=30 * GIB)))
    for each in creating:
        each.ended(Ending.FAILED)


def test_budgets_of_the_same_name_in_other_pods_are_others(crishim: Crishim) -> None:
    crishim.rewrite(of_budget("x", LARGE, container="a"))
    assert "has not enough compute left" in crishim.refusal(of_budget("y", LARGE, container="a"))


def test_a_budget_and_a_container_of_the_same_name_are_two(crishim: Crishim) -> None:
    containers = {"a": {"gpu": USE}, "pod": {"gpu": [grant(share=600)]}}
    document = allocation(crit=["budgets"], budgets={"pod": {"gpu": [grant(share=600)]}}, containers=containers)
    crishim.rewrite(Create(container="a", annotations=signed(document)))
    assert "has not enough compute left" in crishim.refusal(Create(container="pod", annotations=signed(document)))


def test_a_budget_that_grew_counts_with_the_most_that_any_container_was_given(crishim: Crishim) -> None:
    """One runs with the older grant; others can't have what either of the two may use."""
    crishim.rewrite(of_budget("x", grant(share=300, memory=60 * GIB), container="a"))
    crishim.rewrite(of_budget("x", grant(share=700, memory=20 * GIB), container="b", gen=2))
    assert "has not enough compute left" in crishim.refusal(alone("y", grant(share=301, memory=0)))
    assert "has not enough memory left" in crishim.refusal(alone("y", grant(share=0, memory=20 * GIB + 1)))
    crishim.rewrite(alone("y", grant(share=300, memory=20 * GIB)))


def test_several_grants_of_a_budget_on_one_card_count_together(crishim: Crishim) -> None:
    twice = grant(share=300, memory=GIB), grant(share=300, memory=GIB), grant(OTHER_CARD, share=1000)
    for name in "ab":
        crishim.rewrite(of_budget("x", *twice, container=name))
    assert f"card {CARD} has not enough compute" in crishim.refusal(alone("y", grant(share=401)))
    crishim.rewrite(alone("y", grant(share=400)))


def test_a_container_that_uses_a_budget_that_is_not_there_refuses_all_of_the_pod(crishim: Crishim) -> None:
    containers = {"a": {"gpu": {"budget": "other"}}, "main": {"gpu": [grant()]}}
    document = allocation(crit=["budgets"], budgets={"pod": {"gpu": [grant()]}}, containers=containers)
    assert crishim.refusal(Create(annotations=signed(document))) == (
        "partage: this pod's allocation cannot be read: $.containers.a.gpu.budget is not what is allowed there: "
        "a budget that has gpu: pod; delete the pod, so that its successor gets an allocation of its own"
    )
