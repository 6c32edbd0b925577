"""The closed form of fragmentation agrees with its definition by classes of pods."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_gpu.allocator import Shape
from partage_gpu.allocator.mix import read_mix
from partage_gpu.allocator.plan import planned
from partage_gpu.allocator.policies import PolicyJudge
from partage_gpu.allocator.shapes import TypicalShape
from partage_gpu.allocator.trial import Offer, Trial
from partage_plugins.api import Resources, Slot
from support.gpu_fleet import Fleet, ask, cards, pod

SHAPES = st.builds(
    Shape,
    cpu_milli=st.sampled_from([0, 1000, 4000, 9000]),
    count=st.integers(1, 3),
    milli=st.sampled_from([100, 300, 500, 810, 1000]),
    models=st.sampled_from([(), (), ("T4",), ("A10",)]),
)


def fragments(shapes: list[Shape], left: list[int], cpu: int) -> float:
    """The definition: the mean over pods of what each could not use."""
    total = 0.0
    for shape in shapes:
        large = [milli for milli in left if milli >= shape.milli]
        fits = len(large) >= shape.count and cpu >= shape.cpu_milli and (not shape.models or "T4" in shape.models)
        total += sum(milli for milli in left if milli < shape.milli) if fits else sum(left)
    return total / len(shapes)


@pytest.mark.slow
@given(
    st.lists(SHAPES, min_size=1, max_size=5, unique=True),
    st.lists(st.sampled_from([0, 190, 500, 700, 1000]), min_size=2, max_size=4),
    st.sampled_from([500, 4500, 10_000]),
    st.sampled_from([100, 300, 500]),
)
def test_a_gain_is_the_difference_of_two_fragmentations(
    shapes: list[Shape], left: list[int], cpu: int, milli: int
) -> None:
    typical = tuple(TypicalShape(shape, 1 / len(shapes), 1 / len(shapes)) for shape in shapes)
    fleet = Fleet(cards("a", len(left)), shapes=typical)
    for place, idle in enumerate(left):
        if idle < 1000:
            fleet.place_on(Slot(0), pod(ask(1000 - idle, cards=(f"a{place}",))))
    fleet.plugin.partage_node_room(Slot(0), Resources(cpu_milli=cpu), Resources(cpu_milli=cpu))
    judge = PolicyJudge(fleet.plugin.cluster, typical)
    judge.looks()
    plan = planned(pod(ask(milli), cpu_milli=400), read_mix("fgd"))
    trial = Trial(fleet.plugin.cluster, np.array([0], np.int32), plan.cpu_milli)
    offer = Offer(trial, trial.possible(plan.asks[0]), plan.asks[0])
    gains = judge.published.gains(offer)[0]
    before = fragments(shapes, left, cpu)
    for place, idle in enumerate(left):
        if idle >= milli:
            after = [*left[:place], idle - milli, *left[place + 1 :]]
            assert gains[place] == pytest.approx(before - fragments(shapes, after, cpu - 400), abs=1e-6)
            chosen = np.zeros(offer.possible.shape, np.bool_)
            chosen[0, place] = True
            assert judge.published.gains_of_sets(offer, chosen)[0] == pytest.approx(gains[place], abs=1e-6)


def test_cards_that_want_for_cpu_are_fragments_in_part() -> None:
    """CPU for 500 milli, two idle cards: a twentieth of the other 1500 is fragments; with one more pod, of 1000."""
    typical = (TypicalShape(Shape(1000, 1, 500), 1.0, 1.0),)
    fleet = Fleet(cards("a", 2), shapes=typical, cpu_milli=1000)
    judge = PolicyJudge(fleet.plugin.cluster, typical)
    judge.looks()
    (wanted,) = planned(pod(ask(500)), read_mix("fgd+")).asks
    trial = Trial(fleet.plugin.cluster, np.array([0], np.int32), 0)
    offer = Offer(trial, trial.possible(wanted), wanted)
    assert judge.published.gains(offer)[0, :2].tolist() == [0, 0]
    assert judge.scarce.gains(offer)[0, :2].tolist() == pytest.approx([25, 25])
    fleet.plugin.partage_node_room(Slot(0), Resources(cpu_milli=4000), Resources(cpu_milli=4000))
    assert judge.scarce.gains(offer)[0, :2].tolist() == pytest.approx([0, 0])
