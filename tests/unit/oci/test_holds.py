"""Room is held from a create until no container has it: never overcommitted, never by the dead, and for a restart."""

from __future__ import annotations

from functools import cache, partial

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from partage_oci.holds import Holds
from partage_oci.placement import Placement
from partage_oci.records import EngineRecord
from partage_oci.words import asked_of
from partage_plugins.api import Inventory, NodeName, PodRequest
from partage_plugins.errors import Refused
from partage_plugins.registry.registry import Registry
from partage_scheduler.core import plugins
from support.extent import examples
from support.gpu_fleet import card
from support.objects import of_cards

GIB = 1 << 30
NODE = NodeName("lone")
HOLD_S = 60.0
IDS = tuple(letter * 64 for letter in "abcdef")


def inventory(cards: int) -> Inventory:
    return of_cards(card(f"GPU-{number}", gib=24, index=number) for number in range(cards))


@cache
def registry() -> Registry:
    return plugins()


class Site:
    """Holds over one or more cards."""

    def __init__(self, cards: int = 1) -> None:
        self.placement = Placement(NODE, registry())
        self.placement.take_in(inventory(cards))
        self.holds = Holds(self.placement, NODE, restart_hold_s=HOLD_S)

    def request(self, id_: str, share: int, memory: str = "1g") -> PodRequest:
        asked = asked_of([f"PARTAGE_SHARE={share}", f"PARTAGE_MEMORY={memory}"], {})
        assert asked is not None
        return self.placement.request(asked.pod(id_, memory_bytes=None))

    def place(self, id_: str, share: int, now_s: float = 0.0, memory: str = "1g") -> EngineRecord:
        made = partial(EngineRecord, id=id_, pid=1, start=1, runtime="/usr/bin/runc", root="/r", folder=f"/{id_}")
        return self.holds.place(self.request(id_, share, memory), made, now_s)

    def ended(self, id_: str, now_s: float = 0.0) -> None:
        """Let a container that was created and ran end."""
        self.holds.creator_ended(id_, is_created=True)
        self.holds.over(id_, now_s, is_removed=False)

    @property
    def given_milli(self) -> list[int]:
        return [room.given_milli for room in self.placement.rooms()]


def test_two_creates_never_see_the_same_room() -> None:
    site = Site()
    site.place(IDS[0], 600)
    with pytest.raises(Refused, match=r"no card has a share of 600 milli left; the most that is free .* is 400 milli"):
        site.place(IDS[1], 600)
    assert site.given_milli == [600]


def test_a_create_that_failed_leaves_nothing_held() -> None:
    site = Site()
    site.place(IDS[0], 1000)
    site.holds.creator_ended(IDS[0], is_created=False)
    assert site.given_milli == [1000], "until the broker says that nothing has it"
    assert site.holds.over(IDS[0], 0, is_removed=False)
    assert site.given_milli == [0]
    assert site.holds.of(IDS[0]) is None


def test_one_that_is_started_again_finds_its_place_under_another_key() -> None:
    site = Site()
    first = site.place(IDS[0], 1000)
    site.ended(IDS[0])
    again = site.place(IDS[0], 1000)
    assert (first.n, again.n, first.grants) == (1, 2, again.grants)
    assert first.key != again.key
    with pytest.raises(Refused, match="has not ended"):
        site.place(IDS[0], 1000)


def test_whoever_finds_no_room_hears_for_whom_it_is_kept_and_how_long() -> None:
    site = Site()
    site.place(IDS[0], 700)
    site.ended(IDS[0], now_s=100.0)
    site.place(IDS[1], 300, now_s=112.0)
    with pytest.raises(Refused) as no:
        site.place(IDS[2], 500, now_s=112.0)
    kept = "room is kept 48 s longer for container aaaaaaaaaaaa, in case it is started again"
    assert str(no.value).endswith(f"{kept}, and `docker rm aaaaaaaaaaaa` frees it")
    with pytest.raises(Refused) as never:
        site.place(IDS[2], 800, now_s=112.0)
    assert "kept" not in str(never.value), "it would not fit there either"
    assert site.given_milli == [1000]


def test_a_kept_place_ends_with_its_time_or_with_its_container() -> None:
    site = Site(cards=2)
    for id_, now_s in ((IDS[0], 0.0), (IDS[1], 1.0)):
        site.place(id_, 1000, memory="24g")
        site.ended(id_, now_s)
    assert site.holds.expire(HOLD_S, lambda _: False) == (IDS[0],)
    assert site.holds.expire(HOLD_S, lambda record: record.folder == f"/{IDS[1]}") == (IDS[1],)
    assert site.given_milli == [0, 0]


def test_a_restart_that_asks_for_more_than_there_is_keeps_the_old_place() -> None:
    site = Site()
    site.place(IDS[0], 300)
    site.ended(IDS[0])
    site.place(IDS[1], 600)
    with pytest.raises(Refused):
        site.place(IDS[0], 500)
    assert site.given_milli == [900]
    assert site.place(IDS[0], 400).n == 2


class Machine(RuleBasedStateMachine):
    """Containers of one card in any order, with agents that die."""

    def __init__(self) -> None:
        super().__init__()
        self.site, self.now_s = Site(), 0.0
        self.shares: dict[str, int] = {}
        """Shares of the containers that hold something on the machine."""
        self.stage: dict[str, str] = {}

    @rule(id_=st.sampled_from(IDS), share=st.sampled_from([100, 300, 500, 1000]))
    def create(self, id_: str, share: int) -> None:
        others = sum(held for other, held in self.shares.items() if other != id_)
        try:
            record = self.site.place(id_, share, self.now_s)
        except Refused:
            assert others + share > 1000 or self.stage.get(id_) in {"creating", "running"}
            return
        assert others + share <= 1000
        assert sum(grant.share_milli for grant in record.grants) == share
        self.shares[id_], self.stage[id_] = share, "creating"

    @rule(id_=st.sampled_from(IDS), is_created=st.booleans())
    def creator_ends(self, id_: str, *, is_created: bool) -> None:
        if self.stage.get(id_) == "creating":
            self.site.holds.creator_ended(id_, is_created=is_created)
            self.stage[id_] = "running"

    @rule(id_=st.sampled_from(IDS), is_removed=st.booleans())
    def ends(self, id_: str, *, is_removed: bool) -> None:
        hold = self.site.holds.of(id_)
        if self.stage.get(id_) == "running" and hold is not None:
            is_free = self.site.holds.over(id_, self.now_s, is_removed=is_removed)
            assert is_free == (is_removed or not hold.record.is_created)
            if is_free:
                del self.shares[id_], self.stage[id_]
            else:
                self.stage[id_] = "kept"

    @rule(seconds=st.sampled_from([1.0, 30.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.now_s += seconds
        for id_ in self.site.holds.expire(self.now_s, lambda _: False):
            assert self.stage[id_] == "kept"
            del self.shares[id_], self.stage[id_]

    @precondition(lambda self: self.shares)
    @rule()
    def agent_dies(self) -> None:
        """The next agent restores the records; for a kept place it asks the broker again."""
        records = [hold.record for hold in self.site.holds]
        self.site = Site()
        for record in records:
            self.site.holds.find(record)
            self.stage[record.id] = "running" if record.is_created else "creating"

    @invariant()
    def what_is_held_is_what_is_given(self) -> None:
        assert {hold.record.id: hold.stage for hold in self.site.holds} == self.stage
        assert self.site.given_milli == [sum(self.shares.values())]
        assert sum(self.shares.values()) <= 1000


Machine.TestCase.settings = settings(max_examples=examples(40), stateful_step_count=30, deadline=None)
TestMachine = Machine.TestCase
