"""What people are told of the driver's own limits: only what it does hold."""

from __future__ import annotations

from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.wire.leases import Terms
from partage_isolation.wire.report import told
from partage_plugins.vocabulary.names import BudgetName, CardId, ContainerKey
from unit.isolation.watching.scenes import CARD, KEY, MIB, OTHER_KEY, container


def holds(key: ContainerKey, card: CardId) -> int | None:
    return 100 * MIB if (key, card) == (KEY, CARD) else None


def limits(*containers: ContainerFacts) -> list[int | None]:
    answer = told(
        containers, version="1", library="", cards=(), findings=(), terms=Terms("virtual-time"), driver_holds=holds
    )
    return [each.cards[0].driver_limit_bytes for each in answer.containers]


def test_the_limit_is_that_of_the_container_whose_group_has_it() -> None:
    assert limits(container(), container(key=OTHER_KEY)) == [100 * MIB, None]


def test_of_a_budget_that_several_use_the_driver_holds_none() -> None:
    budget = BudgetName("pod")
    assert limits(container(budget=budget), container(key=OTHER_KEY, budget=budget)) == [None, None]
    assert limits(container(budget=budget)) == [100 * MIB]
