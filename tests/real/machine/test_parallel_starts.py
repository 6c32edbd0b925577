"""A hundred programs want a container with a part of a card at once, and every service dies meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from soak.starts.rounds import CARDS, Ground, one_round
from support.machine_stage import machine_up

pytestmark = pytest.mark.timeout(300)
SEED = 1


@pytest.fixture
def ground() -> Iterator[Ground]:
    with machine_up(CARDS, say=print) as stage:
        yield Ground.on(stage)


def test_of_a_hundred_starts_at_once_as_many_run_as_fit_and_the_others_are_told_why(ground: Ground) -> None:
    found = one_round(ground, SEED)
    assert (found.ran, found.told_why) == (24, 76)
    assert not found.wrong
