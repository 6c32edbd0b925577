"""A card of its own is decided on by simpler code than cards that gangs tie together; what comes out is the same."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from partage_isolation.leases import node as islands
from partage_isolation.leases.arbiter import Arbiter
from partage_isolation.leases.durations import MS, SECOND
from partage_isolation.leases.line import Hint, LineState, Write
from partage_isolation.leases.policies import NAMES, by_name
from partage_isolation.leases.turns import Deciding
from partage_plugins.vocabulary.names import CardId, ContainerKey

CARD = CardId("one")
KEYS = tuple(ContainerKey(name) for name in "abc")
Step = tuple[str, int, int]
_terms = st.tuples(st.sampled_from([0, 1, 100, 500]), st.sampled_from([1000, 1000, 500, 100]))
_steps = st.tuples(
    st.sampled_from(["want", "want", "drain", "drain", "drain", "idle", "leave", "join", "wait"]),
    st.integers(0, 2),
    st.sampled_from([0, 20_000, MS, 3 * MS, 7 * MS, 25 * MS, 120 * MS, 6 * SECOND]),
)


def played(policy: str, terms: Sequence[tuple[int, int]], steps: Sequence[Step]) -> list[tuple[int, Write | Hint]]:
    """What an arbiter does when those things happen; time passes before each, with a tick whenever one is due."""
    chosen = by_name(policy)
    arbiter, now = Arbiter(policy=lambda _: chosen), 1000 * SECOND
    arbiter.tick(now)
    for key, (share, limit) in zip(KEYS, terms, strict=True):
        arbiter.put(key, CARD, share=min(share, limit), limit=limit)
        arbiter.joined(key, CARD, key, now)
    acts = [(now, act) for act in arbiter.take()]
    for what, who, pause in steps:
        end = now + pause
        while arbiter.due is not None and arbiter.due <= end:
            now = max(now, arbiter.due)
            arbiter.tick(now)
            acts += [(now, act) for act in arbiter.take()]
        now = end
        happens(arbiter, KEYS[who], what, now)
        acts += [(now, act) for act in arbiter.take()]
    return acts


def happens(arbiter: Arbiter, key: ContainerKey, what: str, now: int) -> None:
    epoch = arbiter.epoch(key, CARD)
    match what:
        case "want":
            arbiter.wanted(key, CARD, key, epoch, now)
        case "drain":
            arbiter.drained(key, CARD, key, epoch, now, True, now)
        case "idle":
            arbiter.idle(key, CARD, key, epoch, now)
        case "leave":
            arbiter.left(key, CARD, key, now)
        case _:
            arbiter.joined(key, CARD, key, now)


@pytest.mark.slow
@pytest.mark.parametrize("policy", NAMES)
@settings(max_examples=100, deadline=None)
@given(terms=st.lists(_terms, min_size=3, max_size=3), steps=st.lists(_steps, min_size=10, max_size=60))
def test_what_it_does_is_what_the_rules_for_several_cards_say(
    policy: str, terms: list[tuple[int, int]], steps: list[Step]
) -> None:
    simple = played(policy, terms, steps)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(islands, "decider", Deciding)
        assert played(policy, terms, steps) == simple


def test_it_grants_at_all() -> None:
    steps = [("want", 0, 0), ("want", 1, 0), ("drain", 0, 7 * MS)]
    states = [act.state for _, act in played("virtual-time", [(500, 1000)] * 3, steps) if isinstance(act, Write)]
    assert {LineState.SOLE, LineState.LEASE} < set(states)
