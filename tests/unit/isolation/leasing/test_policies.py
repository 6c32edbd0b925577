"""What each policy decides, by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from partage_isolation.leases.durations import MS, SECOND
from partage_isolation.leases.policies import DEFAULT, NAMES, by_name
from partage_isolation.leases.policies.policy import Tally
from partage_isolation.leases.policies.virtual_time import VirtualTime

NOW = 1000 * SECOND
OURS = VirtualTime()


def test_each_is_chosen_by_its_name() -> None:
    assert DEFAULT in NAMES
    assert {name for name in NAMES if not by_name(name).is_metering} == {"free-run"}
    with pytest.raises(KeyError):
        by_name("fair")


def test_without_a_share_one_is_behind_everybody_with_one() -> None:
    none, tiny = Tally(0, 1000), Tally(1, 1000)
    OURS.charge(tiny, 3600 * SECOND, NOW)
    assert OURS.rank(tiny, NOW) < OURS.rank(none, NOW)


def test_debt_stays_and_credit_ends() -> None:
    owing, rested = Tally(500, 1000, virtual=10 * SECOND), Tally(500, 1000, virtual=0)
    OURS.came(owing, SECOND)
    OURS.came(rested, SECOND)
    assert (owing.virtual, rested.virtual) == (10 * SECOND, 700 * MS)


@given(st.integers(1, 999), st.lists(st.integers(0, 20), min_size=1, max_size=30))
def test_nobody_gets_above_the_ceiling_for_long(limit: int, waits: list[int]) -> None:
    """Turns as long as they may be, as often as they may: the sum stays below the limit and one burst."""
    account, now, held = Tally(0, limit), NOW, 0
    for wait in waits:
        now = max(now + wait * MS, OURS.opens_at(account, now + wait * MS))
        run = OURS.run_ns(account, now, is_contended=True)
        assert run is not None
        assert run >= 9 * MS
        now, held = now + run, held + run
        OURS.charge(account, run, now)
    assert held <= (now - NOW) * limit // 1000 + OURS.timing.ceiling_most_ns + MS


def test_caps_hold_even_where_nobody_else_wants_the_card() -> None:
    caps, account = by_name("caps"), Tally(250, 1000)
    assert caps.run_ns(account, caps.opens_at(account, NOW), is_contended=False) is not None
    caps.charge(account, SECOND, NOW + SECOND)
    assert caps.opens_at(account, NOW + SECOND) > NOW + 2 * SECOND
    whole = Tally(1000, 1000)
    assert caps.run_ns(whole, NOW, is_contended=False) is None
