"""Containers with several cards get them together, whoever else wants one of them."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from isolation.leasing.flooding import Flooder
from support.isolated import Isolated

pytestmark = pytest.mark.slow
MIB = 1 << 20


def test_gangs_and_those_with_one_card_all_have_turns(place: Isolated) -> None:
    with ExitStack() as stack:
        gangs = [stack.enter_context(Flooder(place.prepare([MIB, MIB], share=300), "gang 2")) for _ in range(2)]
        single = stack.enter_context(Flooder(place.prepare([MIB], share=300)))
        for each in (*gangs, single):
            each.more_turns(5)


def test_a_gang_whose_process_is_killed_leaves_all_its_cards(place: Isolated) -> None:
    with ExitStack() as stack:
        one, other = (stack.enter_context(Flooder(place.prepare([MIB, MIB], share=500), "gang 2")) for _ in range(2))
        single = stack.enter_context(Flooder(place.prepare([MIB], share=500)))
        one.more_turns(2)
        one.kill()
        other.more_turns(5)
        single.more_turns(5)
