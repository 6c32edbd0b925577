"""The next question fits into the remaining time, and questions are ordered by value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from real_card.plan import Ground, named, next_step
from real_card.plan import Step as Next
from real_card.result import NO_TIME, Answer
from real_card.row import Facts, Judgement, Row
from real_card.rows import EVERY
from real_card.runner import each_answer, unanswered

COSTS = st.lists(st.floats(min_value=0.1, max_value=60), max_size=12)
BUDGET = st.floats(min_value=0, max_value=300)
FREE = Ground(1 << 40)


def judge(_: Facts) -> Judgement:
    return Judgement(None, "")


def row(name: str, cost_s: float = 1.0, managed_bytes: int = 0) -> Row:
    return Row(name, "?", "any", ("memory",), judge, cost_s=cost_s, managed_bytes=managed_bytes)


def rows_of(costs: Sequence[float]) -> list[Row]:
    return [row(f"row-{number}", cost) for number, cost in enumerate(costs)]


@given(costs=COSTS, budget_s=BUDGET, used=st.data())
def test_steps_never_take_more_than_the_budget(costs: list[float], budget_s: float, used: st.DataObject) -> None:
    waiting, left_s, asked = rows_of(costs), budget_s, list[str]()
    while step := next_step(waiting, left_s):
        assert 0 < step.limit_s <= min(left_s, step.row.limit_s)
        left_s -= used.draw(st.floats(min_value=0, max_value=step.limit_s))
        waiting.remove(step.row)
        asked.append(step.row.name)
    assert left_s >= 0
    assert asked == sorted(asked, key=lambda name: int(name.partition("-")[2]))
    assert all(left.cost_s > left_s for left in waiting)


@given(costs=COSTS, budget_s=BUDGET)
def test_a_row_that_does_not_fit_makes_way_for_one_that_does(costs: list[float], budget_s: float) -> None:
    rows = rows_of(costs)
    fitting = [each for each in rows if each.cost_s <= budget_s]
    step = next_step(rows, budget_s)
    assert (step.row if step else None) == (fitting[0] if fitting else None)


class Learning:
    """Asks nothing itself, but records another row's answer."""

    def __init__(self, also: str) -> None:
        self.also, self.asked = also, list[str]()

    def answers(self, step: Next) -> Iterator[Answer]:
        self.asked.append(step.row.name)
        yield unanswered(step.row, "absent", "")
        yield unanswered(row(self.also), "absent", "")


def test_what_a_program_learnt_by_the_way_is_not_asked_again() -> None:
    rows, runner = rows_of([1, 1, 1]), Learning("row-2")
    answers = list(each_answer(runner, rows, FREE, float("inf")))
    assert runner.asked == ["row-0", "row-1"]
    assert sorted(each.row for each in answers) == [each.name for each in rows]


def test_each_row_that_is_not_asked_says_why() -> None:
    rows = [row("managed", managed_bytes=1 << 30), row("late")]
    answers = list(each_answer(Learning("none"), rows, Ground(1 << 30), float("-inf")))
    assert [(each.row, each.state) for each in answers] == [("managed", "absent"), ("late", NO_TIME)]
    assert "--own-card" in answers[0].found
    assert "takes 1 s" in answers[1].found


@pytest.mark.parametrize(
    ("asked", "own_card", "is_forbidden"), [(512, False, False), (513, False, True), (513, True, False)]
)
def test_managed_memory_beyond_half_of_what_is_free_wants_a_card_of_ones_own(
    asked: int,
    own_card: bool,  # noqa: FBT001  the example
    is_forbidden: bool,  # noqa: FBT001  the example
) -> None:
    why = Ground(1024 << 20, own_card=own_card).forbids(row("managed", managed_bytes=asked << 20))
    assert (why is not None) == is_forbidden


def test_rows_are_found_by_name_or_by_what_their_names_begin_with_in_their_own_order() -> None:
    assert [each.name for each in named(EVERY, ["death", "fill"])] == ["fill", "death"]
    assert [each.name for each in named(EVERY, ["torch"])] == ["torch"]
    assert len(named(EVERY, ["kernel-cost"])) == 2
    with pytest.raises(KeyError, match="no-such-row"):
        named(EVERY, ["death", "no-such-row"])
