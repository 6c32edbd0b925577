"""Samples in any order: the invariants of every round."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.audit.facts import StateName
from partage_isolation.audit.proofs import Birth
from partage_isolation.audit.suspicions import Round, Sight
from unit.isolation.watching.scenes import ID, KEY, MIB, Story, container, row, seen, sight

pytestmark = pytest.mark.slow  # many rounds of many samples

PIDS = st.integers(1, 3)
BIRTHS = st.builds(Birth, st.integers(100, 101), st.integers(1, 2))
STATES: st.SearchStrategy[StateName] = st.sampled_from(("live", "detached", "unconfirmed", "dead"))
BYTES = st.integers(0, 40).map(lambda each: each * 32 * MIB)


@st.composite
def rounds(draw: st.DrawFn) -> Round:
    """Any state that the world may show."""
    rows = draw(st.dictionaries(PIDS, st.tuples(BYTES, BYTES, STATES, st.booleans()), max_size=3))
    sights = draw(st.dictionaries(PIDS, st.tuples(st.none() | st.booleans(), BIRTHS, st.booleans()), max_size=3))
    first: Sight | None = draw(
        st.none() | st.sampled_from(((), ("/run/partage",), None)).map(lambda wrong: sight(1, wrong=wrong))
    )
    return seen(
        books=draw(
            st.just(())
            | st.just(
                container(
                    *(
                        row(pid, lent, overhead=overhead, state=state, connected=connected)
                        for pid, (lent, overhead, state, connected) in rows.items()
                    )
                )
            )
        ),
        uses=draw(st.dictionaries(PIDS, BYTES, max_size=3)),
        blind=draw(st.booleans()),
        sights=tuple(
            sight(pid, library=library, born=born, key=KEY if ours else None)
            for pid, (library, born, ours) in sights.items()
        ),
        first_seen={} if first is None else {ID: first},
        running=draw(st.sampled_from(({KEY: True}, {KEY: False}, {}))),
        runtime_away=draw(st.booleans()),
        folders=frozenset({KEY}),
        gone=frozenset(draw(st.sets(PIDS))),
    )


@given(st.lists(rounds(), max_size=10))
def test_whatever_rounds_show_one_alone_accuses_and_forgets_nobody(story: Sequence[Round]) -> None:
    """A finding was suspected in at least two rounds: this one, and an earlier one that may have been blind."""
    told, absences = Story(), 0
    for number, one in enumerate(story):
        verdict = told.then(one)
        assert not verdict.findings or number > 0
        assert len(verdict.findings) <= len(told.memory.violations) <= 64
        assert told.memory.bounds.refused.keys() <= told.memory.bounds.allowed.keys()
        assert told.memory.bounds.allowed.keys() <= {(KEY, card) for card in one.uses}
        assert told.memory.absent.keys() | told.memory.listed <= one.after.keys()
        if one.listing is not None:
            absences = absences + 1 if KEY in one.after and KEY not in one.listing.keys_in_use else 0
        if verdict.forget:
            assert absences >= 2
            assert all(each.state == "dead" and not each.connected for each in one.after[KEY].processes)
    before = {evidence: violations.times for evidence, violations in told.memory.violations.items()}
    told.then(seen(books=container(), blind=True, runtime_away=True, first_seen={}))
    after = {evidence: violations.times for evidence, violations in told.memory.violations.items()}
    assert all(times == before[evidence] for evidence, times in after.items()), "what nobody sees adds nothing"


@given(st.permutations([1, 2, 3, 4]), BYTES)
def test_the_order_of_processes_in_a_sample_does_not_matter(order: Sequence[int], held: int) -> None:
    books = container(*(row(pid, 100 * MIB) for pid in order))
    one = seen(books=books, uses=dict.fromkeys(order, held), sights=tuple(map(sight, order)))
    other = seen(books=books, uses=dict.fromkeys(sorted(order), held), sights=tuple(map(sight, sorted(order))))
    assert Story().kinds(one, one) == Story().kinds(other, other)
