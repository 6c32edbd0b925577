"""What the broker counts of containers adds up over a node, also where several of them have one budget."""

from __future__ import annotations

from partage_base.daemon.metrics import Metrics
from partage_isolation.audit.facts import ContainerFacts
from partage_isolation.audit.metrics import BrokerFigures, Counters
from partage_isolation.ledger.samples import ContextSizes
from partage_plugins.vocabulary.names import BudgetName, ContainerKey, ContainerName
from unit.isolation.watching.scenes import MIB, container, row


def facts_of(name: str, pid: int, budget: str | None) -> ContainerFacts:
    key = ContainerKey(name * 32)
    plain = container(row(pid, 100 * MIB, key=key), key=key, budget=None if budget is None else BudgetName(budget))
    return ContainerFacts(
        key=key,
        pod=plain.pod,
        container=ContainerName(name),
        gen=1,
        cards=plain.cards,
        processes=plain.processes,
        budget_name=plain.budget_name,
    )


def values(name: str, *containers: ContainerFacts) -> dict[str, float]:
    """Of that family, by container."""
    metrics = Metrics("broker")
    sizes = ContextSizes()
    BrokerFigures(
        metrics,
        node="n1",
        counters=Counters(),
        facts=lambda: containers,
        sizes=sizes,
        free_rows=lambda: 0,
        refused_rows=lambda: 0,
    )
    (family,) = (each for each in metrics.families() if each.name == name)
    return {sample.labels["container"]: sample.value for sample in family.samples}


def test_what_a_budget_has_is_said_once_and_what_programs_use_by_container() -> None:
    containers = facts_of("a", 1, "pod"), facts_of("b", 2, "pod"), facts_of("c", 3, None)
    assert values("partage_container_memory_limit_bytes", *containers) == {
        "budget/pod": 1024 * MIB,
        "c": 1024 * MIB,
    }
    assert values("partage_container_memory_used_bytes", *containers) == dict.fromkeys("abc", 100 * MIB)
