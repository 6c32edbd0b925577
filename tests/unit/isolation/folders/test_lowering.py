"""What root lowers is never above what was granted, holds by itself, and ends with a higher gen."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

from partage_isolation.errors import SpecRefused
from partage_isolation.store.specs import Spec
from partage_isolation.wire.limits import lowered, spec_of
from partage_isolation.wire.messages import Prepare, SetLimits
from partage_plugins.vocabulary import CardId, ContainerKey, ContainerName, GpuGrant
from support.broker import CARD, pod

KEY = ContainerKey("0" * 32)
ASKED = Prepare(
    key=KEY,
    pod=pod(),
    container=ContainerName("main"),
    gen=3,
    grants=(
        GpuGrant(card=CARD, share_milli=300, limit_milli=700, memory_bytes=1000),
        GpuGrant(card=CardId("GPU-other"), share_milli=1000, limit_milli=1000, memory_bytes=1000),
    ),
)
SPEC = spec_of(ASKED, library="", known=None)


def said(**limits: int | None) -> SetLimits:
    return SetLimits(key=KEY, card=CARD, **limits)


def in_force(spec: Spec) -> tuple[int, int, int]:
    card = spec.cards[0]
    return card.memory_in_force, card.share_in_force, card.limit_in_force


_AMOUNT = st.one_of(st.none(), st.integers(0, 1000))


@given(
    st.lists(
        st.fixed_dictionaries({}, optional={"memory_bytes": _AMOUNT, "share_milli": _AMOUNT, "limit_milli": _AMOUNT})
    )
)
def test_nothing_is_ever_above_what_was_granted_nor_a_share_above_its_limit(
    changes: list[dict[str, int | None]],
) -> None:
    spec = SPEC
    for change in changes:
        before = spec
        try:
            spec = lowered(spec, said(**change))
        except SpecRefused:
            continue
        memory, share, limit = in_force(spec)
        assert memory <= 1000
        assert share <= min(300, limit)
        assert limit <= 700
        for name, field in (
            ("memory_bytes", "lowered"),
            ("share_milli", "lowered_share"),
            ("limit_milli", "lowered_limit"),
        ):
            now = getattr(spec.cards[0], field)
            assert now == change.get(name, getattr(before.cards[0], field))
        assert spec.cards[1] == SPEC.cards[1]


def test_nothing_named_is_nothing_changed() -> None:
    assert lowered(SPEC, said()) == SPEC
    assert said().memory_bytes is UNSET


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"memory_bytes": 1001}, "is more, which only an allocation can give"),
        ({"share_milli": 301}, "301 is more, which only an allocation can give"),
        ({"limit_milli": 701}, "701 is more, which only an allocation can give"),
        ({"share_milli": 300, "limit_milli": 200}, "share 300 of card .* would be above its limit 200; lower both"),
    ],
)
def test_more_than_was_granted_is_refused(limits: dict[str, int | None], why: str) -> None:
    with pytest.raises(SpecRefused, match=why):
        lowered(SPEC, said(**limits))


def test_a_card_that_it_does_not_have_is_refused() -> None:
    with pytest.raises(SpecRefused, match="has no card GPU-none"):
        lowered(SPEC, SetLimits(key=KEY, card=CardId("GPU-none"), share_milli=1))


def test_the_same_grants_again_leave_it_lowered_and_a_higher_gen_does_not() -> None:
    spec = lowered(SPEC, said(share_milli=100, limit_milli=200, memory_bytes=500))
    assert in_force(spec_of(ASKED, library="", known=spec)) == (500, 100, 200)
    assert in_force(spec_of(replace(ASKED, gen=4), library="", known=spec)) == (1000, 300, 700)
