"""KubeShare's rules as its documents intend them: who joins a card in use, who opens an idle one."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_plugins.vocabulary import GpuRequest, PodRequest, Slot, Tags
from support.gpu_fleet import Fleet, ask, card, cards, pod


def fleet(*nodes: int) -> Fleet:
    """Nodes with so many cards, `a0`, `a1` and so on the first, `b0` on the second."""
    return Fleet(*(cards("abcdefgh"[place], number) for place, number in enumerate(nodes)), policy="kubeshare")


def tagged(milli: int, **tags: str) -> PodRequest:
    return pod(ask(milli, tags=Tags(**tags)))


def test_the_second_pod_joins_the_first_ones_card_when_both_fill_it_exactly() -> None:
    small = fleet(2)
    assert small.place(pod(ask(400))) == ["a0"]
    assert small.place(pod(ask(600))) == ["a0"]
    assert small.place(pod(ask(1))) == ["a1"]


def test_of_two_cards_the_one_in_use_is_filled_first_unless_the_user_places_by_hand() -> None:
    two = fleet(2)
    assert two.place(pod(ask(200))) == ["a0"]
    assert two.place(pod(ask(300))) == ["a0"], "an idle card is no better than a fitting hole"
    assert two.place(pod(ask(300, cards=("a1",)))) == ["a1"]
    assert two.place(pod(ask(500))) == ["a0"]
    assert two.place(pod(ask(700))) == ["a1"]


def test_the_card_that_is_left_with_the_least_wins_over_all_nodes() -> None:
    two = fleet(1, 1)
    two.place_on(Slot(0), pod(ask(300)))
    two.place_on(Slot(1), pod(ask(500)))
    assert two.place(pod(ask(400))) == ["b0"]
    assert two.place(pod(ask(700))) == ["a0"]


def test_an_idle_card_is_opened_only_where_no_card_in_use_fits() -> None:
    one = fleet(3)
    one.place(pod(ask(600)))
    assert one.place(pod(ask(500))) == ["a1"]
    assert one.place(pod(ask(400))) == ["a0"]


def test_a_card_with_enough_share_but_too_little_memory_is_passed_over() -> None:
    one = Fleet([card("a0", gib=16), card("a1", gib=16)], policy="kubeshare")
    one.place(pod(ask(100, gib=12)))
    assert one.place(pod(ask(100, gib=6))) == ["a1"]
    assert one.place(pod(ask(100, gib=11))) is None, "memory is looked at on the idle path too"


def test_affinity_brings_pods_of_one_tag_onto_one_card() -> None:
    two = fleet(2)
    two.place(pod(ask(700)))
    assert two.place(tagged(200, affinity="green")) == ["a1"], "none carries the tag yet, so a card is opened"
    assert two.place(tagged(200, affinity="green")) == ["a1"]
    assert two.place(pod(ask(100))) == ["a0"], "others still go where they fit best"


def test_affinity_opens_another_card_when_the_groups_is_full() -> None:
    two = fleet(3)
    two.place(tagged(900, affinity="green"))
    two.place(pod(ask(500)))
    assert two.place(tagged(300, affinity="green")) == ["a2"]


def test_affinity_waits_where_neither_the_groups_card_nor_an_idle_one_has_room() -> None:
    one = fleet(2)
    one.place(tagged(900, affinity="green"))
    one.place(pod(ask(500)))
    waiting = tagged(300, affinity="green")
    assert one.place(waiting) is None
    assert one.why_not(waiting) == ["node(s) had cards whose tags keep the pod away"]


def test_anti_affinity_keeps_pods_of_one_tag_on_different_cards() -> None:
    two = fleet(2)
    assert two.place(tagged(100, anti_affinity="red")) == ["a0"]
    assert two.place(tagged(100, anti_affinity="red")) == ["a1"]
    assert two.place(tagged(100, anti_affinity="red")) is None
    assert two.place(tagged(100, anti_affinity="blue")) == ["a0"], "another tag does not mind"


def test_exclusion_shares_a_card_with_the_same_tag_alone() -> None:
    three = fleet(3)
    assert three.place(tagged(100, exclusion="tenant-a")) == ["a0"]
    assert three.place(tagged(100, exclusion="tenant-b")) == ["a1"]
    assert three.place(tagged(100, exclusion="tenant-a")) == ["a0"]
    assert three.place(pod(ask(100))) == ["a2"], "having no tag is a value of its own"
    assert three.place(tagged(100, exclusion="tenant-c")) is None, "and a card without one is not joined either"


def test_every_card_with_another_exclusion_is_out_not_only_the_first_of_a_node() -> None:
    one = fleet(3)
    for place in range(3):
        one.place_on(Slot(0), pod(ask(100, cards=(f"a{place}",))))
    assert one.place(tagged(100, exclusion="tenant-a")) is None


def test_when_the_last_pod_of_a_group_has_gone_its_card_is_anybodys() -> None:
    one = fleet(1)
    one.place(tagged(100, exclusion="tenant-a"), "first")
    assert one.place(pod(ask(100))) is None
    one.give_back("first")
    assert one.place(tagged(100, exclusion="tenant-b")) == ["a0"]


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
    """What the model remembers of a pod."""

    milli: int
    tags: Tags


def model_choice(held: dict[str, list[Held]], nodes: dict[str, list[str]], wanted: GpuRequest) -> str | None:
    """The rules in the order and words of the documents, card by card."""
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
