"""KubeShare's rules as its documents intend them: which pods join a card in use, and which take an idle one."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.api import GpuRequest, PodRequest, Slot, Tags
from support.gpu_fleet import Fleet, ask, card, cards, pod


def fleet(*nodes: int) -> Fleet:
    """Nodes with these numbers of cards: `a0`, `a1` and so on the first, `b0` on the second."""
    return Fleet(*(cards("abcdefgh"[place], number) for place, number in enumerate(nodes)), policy="kubeshare")


def tagged(milli: int, **tags: str) -> PodRequest:
    return pod(ask(milli, tags=Tags(**tags)))


def test_a_card_with_enough_share_but_too_little_memory_is_passed_over() -> None:
    one = Fleet([card("a0", gib=16), card("a1", gib=16)], policy="kubeshare")
    one.place(pod(ask(100, gib=12)))
    assert one.place(pod(ask(100, gib=6))) == ["a1"]
    assert one.place(pod(ask(100, gib=11))) is None, "memory is looked at on the idle path too"


def test_affinity_waits_where_neither_the_groups_card_nor_an_idle_one_has_room() -> None:
    one = fleet(2)
    one.place(tagged(900, affinity="green"))
    one.place(pod(ask(500)))
    waiting = tagged(300, affinity="green")
    assert one.place(waiting) is None
    assert one.why_not(waiting) == ["node(s) had cards whose tags keep the pod away"]


def test_a_pinned_pod_goes_to_its_card_though_another_would_fit_better() -> None:
    one = fleet(3)
    one.place_on(Slot(0), pod(ask(500, cards=("a1",))))
    assert one.place(pod(ask(400, cards=("a2",)))) == ["a2"]
    assert one.place(pod(ask(300, cards=("a2",)))) == ["a2"], "the same name is the same card"


def test_pins_of_one_group_overflow_to_no_other_card() -> None:
    one = fleet(2)
    assert one.place(pod(ask(700, cards=("a0",)))) == ["a0"]
    full = pod(ask(400, cards=("a0",)))
    assert one.place(full) is None
    assert one.why_not(full) == ["Insufficient GPU share"]


class Held(NamedTuple):
    """The model's record of a pod."""

    milli: int
    tags: Tags


def model_choice(held: dict[str, list[Held]], nodes: dict[str, list[str]], wanted: GpuRequest) -> str | None:
    """The rules in the documents' order and wording, card by card."""
    best: tuple[int, str] | None = None
    for names in nodes.values():
        used = [name for name in names if held[name]]
        if wanted.tags.affinity is not None:
            used = [name for name in used if any(pod.tags.affinity == wanted.tags.affinity for pod in held[name])]
        if wanted.tags.anti_affinity is not None:
            wall = wanted.tags.anti_affinity
            used = [name for name in used if all(pod.tags.anti_affinity != wall for pod in held[name])]
        used = [name for name in used if all(pod.tags.exclusion == wanted.tags.exclusion for pod in held[name])]
        left = {name: 1000 - sum(pod.milli for pod in held[name]) - wanted.share_milli for name in used}
        found = [(milli, name) for name, milli in left.items() if milli >= 0]
        idle = [name for name in names if not held[name]]
        if not found and idle:
            found = [(1000 - wanted.share_milli, idle[0])]
        for milli, name in found:
            if best is None or milli < best[0]:
                best = milli, name
    return best and best[1]


TAG = st.sampled_from([None, None, "x", "y"])
PODS = st.lists(
    st.tuples(
        st.integers(1, 20).map(lambda twentieths: 50 * twentieths),
        st.builds(Tags, affinity=TAG, anti_affinity=TAG, exclusion=TAG),
        st.booleans(),
    ),
    max_size=25,
)


@pytest.mark.slow
@given(PODS, st.lists(st.integers(1, 3), min_size=1, max_size=3))
def test_the_rules_are_those_of_a_slow_and_obvious_model(pods: list[tuple[int, Tags, bool]], sizes: list[int]) -> None:
    real = fleet(*sizes)
    nodes = {f"n{place}": [f"{'abc'[place]}{number}" for number in range(size)] for place, size in enumerate(sizes)}
    held: dict[str, list[Held]] = {name: [] for names in nodes.values() for name in names}
    there: list[tuple[str, str, Held]] = []
    for number, (milli, tags, goes) in enumerate(pods):
        wanted = ask(milli, tags=tags)
        expected = model_choice(held, nodes, wanted)
        assert real.place(pod(wanted), f"p{number}") == (None if expected is None else [expected])
        if expected is not None:
            held[expected].append(Held(milli, tags))
            there.append((f"p{number}", expected, held[expected][-1]))
        if goes and there:
            name, at, gone = there.pop(0)
            held[at].remove(gone)
            real.give_back(name)
