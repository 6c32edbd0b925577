"""A budget in an allocation: granted once, used by several containers, refused by readers that do not know it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from partage_plugins.api import (
    GPU,
    Allocation,
    BudgetName,
    BudgetUse,
    CardId,
    ContainerAllocation,
    ContainerKey,
    ContainerName,
    GpuGrant,
    NodeName,
    PodUid,
    grantee_of,
)
from partage_plugins.codecs import (
    CRIT,
    decode_allocation,
    decode_container,
    decode_raw_grants,
    encode_allocation,
    encode_container,
)
from partage_plugins.errors import DecodeError
from unit.codecs import documents
from unit.codecs.documents import allocation, container, text_of

A, B, C = map(ContainerName, "abc")
POD = BudgetName("pod")
GRANT = GpuGrant(card=CardId("c"), share_milli=600, limit_milli=1000, memory_bytes=1)
USE = {"budget": "pod"}


def of_two(**changes: object) -> dict[str, Any]:
    """Containers a and b use the budget `pod`; c has its own grant."""
    return (
        allocation(
            crit=["budgets"],
            budgets={"pod": {"gpu": [documents.gpu_grant()]}},
            containers={"a": {"gpu": USE}, "b": {"gpu": USE}, "c": {"gpu": [documents.gpu_grant(share=1)]}},
        )
        | changes
    )


def test_a_budget_is_counted_once_however_many_containers_use_it() -> None:
    decoded = decode_allocation(text_of(of_two()), (GPU,))
    assert {name: [each.share_milli for each in grants] for name, grants in decoded.of(GPU).items()} == {
        grantee_of(POD): [500],
        C: [1],
    }


def test_each_container_is_given_what_its_budget_was_granted() -> None:
    decoded = decode_allocation(text_of(of_two()), (GPU,))
    assert [[each.share_milli for each in decoded.given(name, GPU)] for name in (A, B, C)] == [[500], [500], [1]]
    assert decoded.given(ContainerName("other"), GPU) == ()
    assert [decoded.budgets_of(name) for name in (A, B, C)] == [{GPU.name: POD}, {GPU.name: POD}, {}]


def test_a_node_reads_the_grants_of_a_budget_as_they_were_written() -> None:
    text = '[{"card":"c","later":[ 1 ]}]'
    document = of_two(budgets={"pod": {"gpu": "HERE"}}, containers={"a": {"gpu": USE, "npu": [2]}, "b": {"gpu": USE}})
    written = decode_raw_grants(text_of(document).replace('"HERE"', text))
    assert {name: bytes(given[GPU.name]).decode() for name, given in written.items()} == {A: text, B: text}
    assert set(written[A]) == {"gpu", "npu"}


def test_what_is_written_is_the_contracts_form() -> None:
    containers = {grantee_of(POD): {GPU.name: (GRANT,)}, C: {GPU.name: (GRANT,)}}
    uses = (BudgetUse(A, GPU.name, POD), BudgetUse(B, GPU.name, POD))
    given = Allocation(gen=1, pod=PodUid("p"), node=NodeName("n"), containers=containers, uses=uses)
    card = {"card": "c", "share": 600, "limit": 1000, "memory": 1}
    assert json.loads(encode_allocation(given)) == {
        "v": 1,
        "gen": 1,
        "crit": ["budgets"],
        "pod": "p",
        "node": "n",
        "containers": {"a": {"gpu": USE}, "b": {"gpu": USE}, "c": {"gpu": [card]}},
        "budgets": {"pod": {"gpu": [card]}},
    }


def test_without_budgets_not_a_byte_of_what_is_written_changes() -> None:
    given = Allocation(gen=1, pod=PodUid("p"), node=NodeName("n"), containers={A: {GPU.name: (GRANT,)}})
    grants = '{"gpu":[{"card":"c","share":600,"limit":1000,"memory":1}]}'
    assert encode_allocation(given) == f'{{"v":1,"gen":1,"crit":[],"pod":"p","node":"n","containers":{{"a":{grants}}}}}'
    key = ContainerKey("0" * 32)
    carried = ContainerAllocation(key=key, gen=1, grants={GPU.name: (GRANT,)})
    assert encode_container(carried) == f'{{"v":1,"key":"{key}","gen":1,"grants":{grants}}}'


def test_a_container_carries_the_name_of_its_budget() -> None:
    text = text_of(container(budgets={"gpu": "pod"}))
    assert decode_container(text, (GPU,)).budgets == {GPU.name: POD}
    assert json.loads(encode_container(decode_container(text, (GPU,))))["budgets"] == {"gpu": "pod"}


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        (
            {"budgets": {"other": {"gpu": []}}},
            "$.containers.a.gpu.budget is 'pod'; allowed: a budget that has gpu: other",
        ),
        ({"budgets": {"pod": {"npu": []}}}, "allowed: a budget that has gpu: there is none"),
        ({"containers": {"a": {"gpu": {"budget": "A B"}}}}, "$.containers.a.gpu.budget"),
        ({"containers": {"a": {"gpu": {"other": "pod"}}}}, "$.containers.a.gpu"),
        ({"budgets": {"a/b": {}}}, "$.budgets"),
        ({"budgets": {"pod": {"gpu": [documents.gpu_grant(share=1001)]}}}, "$.budgets.pod.gpu[0].share is 1001"),
        ({"budgets": {"pod": {"gpu": USE}}}, "$.budgets.pod.gpu"),
        ({"budgets": {}}, "$.containers.a.gpu"),
        ({"containers": {"budget/pod": {}}}, "$.containers"),
    ],
)
def test_a_budget_that_cannot_be_is_refused(changes: dict[str, object], refusal: str) -> None:
    with pytest.raises(DecodeError) as refused:
        decode_allocation(text_of(of_two(**changes)), (GPU,))
    assert refusal in str(refused.value)


def test_a_reader_of_the_release_before_refuses_it_by_its_critical_fields() -> None:
    """The previous release knew these fields and refuses other critical ones; the written text lists the new one."""
    before = {"v", "gen", "pod", "node", "containers", "crit"}
    written = json.loads(encode_allocation(decode_allocation(text_of(of_two()), (GPU,))))
    assert set(written["crit"]) - before == {"budgets"} < set(CRIT)
