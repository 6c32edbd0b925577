"""Which containers are put under the broker, what the broker gets of them, and how its answer is applied."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_isolation.plugin import adjustment_of, question_for
from partage_isolation.wire.messages import Prepared, question_line, read_question
from partage_plugins.api import GPU, CardId, Gang, GpuGrant, Granted, Namespace
from partage_plugins.api.names import BudgetName, Kind
from partage_plugins.testing.examples import container
from support.broker import prepared
from unit.gpu_node.nodes import CARDS, FIRST, MIG, SECOND, part

MEMORY = CARDS[0].memory_bytes
WHOLE = GpuGrant(card=FIRST, share_milli=1000, limit_milli=1000, memory_bytes=MEMORY)
SLICE = GpuGrant(card=FIRST, share_milli=1000, limit_milli=1000, memory_bytes=MEMORY // 4)
SHARE = GpuGrant(card=SECOND, share_milli=250, limit_milli=500, memory_bytes=MEMORY // 2)


def granted(*grants: GpuGrant) -> Granted:
    return Granted(gen=7, grants={GPU.name: grants}, parts={GPU.name: part()})


@pytest.mark.parametrize("grants", [(), (WHOLE,)])
def test_a_container_that_owes_nothing_is_left_alone(grants: tuple[GpuGrant, ...]) -> None:
    assert question_for(container(), granted(*grants)) is None


@pytest.mark.parametrize("grant", [SLICE, SHARE])
def test_a_container_with_part_of_a_card_is_prepared(grant: GpuGrant) -> None:
    asked, about = container("train"), granted(grant)
    question = question_for(asked, about)
    assert question is not None
    assert (question.key, question.pod, question.container) == (asked.key, asked.pod, "train")
    assert (question.gen, question.grants) == (7, (grant,))


def test_the_broker_hears_which_budget_its_grants_are_of() -> None:
    one = replace(container("train"), budgets={GPU.name: BudgetName("pod"), Kind("fpga"): BudgetName("other")})
    question = question_for(one, granted(SHARE))
    assert question is not None
    assert question.budget == "pod"


def test_the_broker_hears_of_which_gang_its_pod_is() -> None:
    train = Gang(Namespace("team"), "train", 2)
    question = question_for(replace(container("train"), gang=train), granted(SHARE))
    assert question is not None
    assert question.gang == train
    assert read_question(question_line(question)) == question


def test_with_one_card_in_part_the_broker_hears_of_the_whole_ones_too() -> None:
    """A card that the broker did not get would have no memory in the container."""
    question = question_for(container(), granted(WHOLE, SHARE))
    assert question is not None
    assert question.grants == (WHOLE, SHARE)


def test_a_card_that_the_inventory_does_not_have_counts_as_shared() -> None:
    unknown = GpuGrant(card=CardId("GPU-gone"), share_milli=1000, limit_milli=1000, memory_bytes=MEMORY)
    assert question_for(container(), Granted(gen=1, grants={GPU.name: (unknown,)})) is not None


GRANTS = st.builds(
    lambda card, share, more, memory_bytes: GpuGrant(
        card=CardId(card), share_milli=share, limit_milli=min(1000, share + more), memory_bytes=memory_bytes
    ),
    st.sampled_from([FIRST, SECOND, MIG]),
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.integers(0, MEMORY),
)


@given(st.lists(GRANTS, min_size=1, max_size=6))
def test_several_grants_of_a_card_add_up_and_none_is_lost(grants: list[GpuGrant]) -> None:
    question = question_for(container(), granted(*grants))
    if question is None:
        return
    assert [each.card for each in question.grants] == list(dict.fromkeys(each.card for each in grants))
    for each in question.grants:
        mine = [grant for grant in grants if grant.card == each.card]
        assert each.memory_bytes == sum(grant.memory_bytes for grant in mine)
        assert each.share_milli == min(1000, sum(grant.share_milli for grant in mine))
    assert read_question(question_line(question)) == question


def test_the_container_gets_what_the_broker_says_and_promises_no_more() -> None:
    question = question_for(container(), granted(SHARE))
    assert question is not None
    answer = prepared(question)
    adjustment = adjustment_of(answer)
    assert adjustment.mounts == answer.mounts
    assert adjustment.enforces == {GPU.name: ("memory",)}
    assert (adjustment.env, adjustment.devices, adjustment.cdi, adjustment.annotations) == ({}, (), (), {})
    assert adjustment_of(Prepared(mounts=(), enforces=("memory", "share", "limit"))).enforces == {
        GPU.name: ("memory", "share", "limit")
    }
