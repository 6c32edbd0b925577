"""How the host represents budgets read by a dialect: one entry for each, or a refusal with its reason."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from msgspec.structs import replace

from partage_plugins.api import Budgeted, BudgetName, BudgetUse, ContainerName, Pod, PodRequest, grantee_of
from partage_plugins.api.kinds import Role
from partage_plugins.errors import PluginNonsense, Refused
from support.sides import OTHER, THING, Ask, plugin, pod, scheduler_side

A, B, C = map(ContainerName, "abc")
POD = BudgetName("pod")
Answer = Mapping[str, Mapping[str, object]]


def of(ask: object, budget: str = "pod") -> Budgeted:
    return Budgeted(budget=BudgetName(budget), ask=ask)


def read(answer: Answer, seen: Pod | None = None) -> PodRequest:
    return scheduler_side(owner=plugin(kind=THING, requests=answer), another=plugin(kind=OTHER)).requests(
        seen or pod("a", "b", "c")
    )


def test_a_budget_is_asked_for_once() -> None:
    request = read({"a": {"thing": of(Ask(2))}, "b": {"thing": of(Ask(2))}, "c": {"thing": Ask(1)}})
    assert request.of(THING) == {C: Ask(1), grantee_of(POD): Ask(2)}
    assert [each.role for each in request.containers] == ["app", "app"]
    assert request.uses == (BudgetUse(A, THING.name, POD), BudgetUse(B, THING.name, POD))
    assert request.asking == {A, B, C}
    assert hash(request) == hash(replace(request))


def test_a_container_may_use_a_budget_of_one_kind_and_have_its_own_of_another() -> None:
    request = read(
        {"a": {"thing": of(Ask(2)), "other": Ask(1)}, "b": {"thing": of(Ask(2)), "other": of(Ask(3), "more")}}
    )
    assert request.of(THING) == {grantee_of(POD): Ask(2)}
    assert request.of(OTHER) == {A: Ask(1), grantee_of(BudgetName("more")): Ask(3)}


def test_one_budget_may_be_of_several_kinds() -> None:
    both = {"thing": of(Ask(2)), "other": of(Ask(1))}
    request = read({"a": both, "b": both})
    assert [each.asks for each in request.containers] == [(("other", Ask(1)), ("thing", Ask(2)))]


def test_containers_of_a_budget_that_ask_for_different_things_are_refused() -> None:
    with pytest.raises(Refused) as refused:
        read({"a": {"thing": of(Ask(2))}, "b": {"thing": of(Ask(3))}})
    assert str(refused.value) == (
        "containers a and b use budget pod of thing and ask for different things; "
        "ask for the same in each: it is granted once"
    )


@pytest.mark.parametrize("role", ["init", "sidecar"])
def test_only_app_containers_may_use_a_budget(role: Role) -> None:
    plain = pod("a", "b")
    seen = replace(plain, containers=(replace(plain.containers[0], role=role), plain.containers[1]))
    with pytest.raises(Refused) as refused:
        read({"a": {"thing": of(Ask(2))}, "b": {"thing": of(Ask(2))}}, seen)
    assert (
        str(refused.value)
        == f"container a ({role}) is to use budget pod of thing; only app containers may use a budget"
    )


@pytest.mark.parametrize(
    ("ask", "why"),
    [
        (of(Ask(1), "A B"), "named a budget 'A B'"),
        (of(Ask(1), "a/b"), "named a budget 'a/b'"),
        (Budgeted(budget=7, ask=Ask(1)), "named a budget 7"),  # type: ignore[arg-type]
        (of("two"), "returned str for thing; allowed: Ask"),
        (of(of(Ask(1))), "returned Budgeted for thing; allowed: Ask"),
    ],
)
def test_a_budget_that_cannot_be_is_its_dialects_fault(ask: object, why: str) -> None:
    with pytest.raises(PluginNonsense, match=f"owner: partage_requests: {why}"):
        read({"a": {"thing": ask}})
