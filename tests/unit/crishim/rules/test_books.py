"""The node's ledger: shortcuts give the same as the full computation, and entries of another process count."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from partage_crishim.reservations import Reservations, ReservationStore
from partage_crishim.rules.errors import NodeNotReady
from partage_crishim.rules.holdings import Holding, Listing, OnNode, Reservation, highest_gen, holders, holders_of
from partage_plugins.api import CardId, ContainerKey, GpuGrant

CARDS = [CardId(f"GPU-{number}") for number in range(3)]
GRANTS = st.builds(
    GpuGrant,
    card=st.sampled_from(CARDS),
    share_milli=st.just(1),
    limit_milli=st.just(1000),
    memory_bytes=st.integers(1, 9),
)
HELD = st.builds(
    Holding,
    key=st.sampled_from("abcd").map(ContainerKey),
    pod=st.sampled_from(["p1", "p2"]),
    container=st.just("main"),
    gen=st.integers(1, 5),
    cards=st.lists(GRANTS, max_size=3).map(tuple),
)
CONTAINERS = st.builds(OnNode, id=st.just("c"), exited=st.booleans(), held=HELD)
LISTINGS = st.builds(Listing, began_s=st.just(0.0), containers=st.lists(CONTAINERS, max_size=6).map(tuple))
RESERVATIONS = st.lists(
    st.builds(Reservation, held=HELD, token=st.just("t"), until_s=st.just(1.0)),
    max_size=4,
    unique_by=lambda each: each.held.key,
)
ONE = Holding(key=ContainerKey("a"), pod="p1", container="main", gen=1, cards=())


@given(LISTINGS, RESERVATIONS, st.sets(st.sampled_from(CARDS)))
def test_who_holds_some_cards_are_those_of_all_who_hold_any_of_them(
    listing: Listing, reservations: list[Reservation], cards: set[CardId]
) -> None:
    found = holders_of(cards, listing, reservations)
    by_key = {each.key: each for each in found}
    assert len(by_key) == len(found)
    everyone = holders(listing, reservations)
    assert by_key == {each.key: each for each in everyone if {grant.card for grant in each.cards} & cards}


@given(LISTINGS, RESERVATIONS)
def test_the_newest_allocation_of_a_pod_counts_from_wherever_it_is_known(
    listing: Listing, reservations: list[Reservation]
) -> None:
    known = [*(each.held for each in listing.containers if each.held), *(each.held for each in reservations)]
    assert highest_gen("p1", listing, reservations) == max((each.gen for each in known if each.pod == "p1"), default=0)


def test_a_living_container_that_cannot_be_read_may_hold_any_card() -> None:
    listing = Listing(began_s=0.0, containers=(OnNode(id="c", exited=False, held=None),))
    for _ in range(2):
        with pytest.raises(NodeNotReady, match="grants that this crishim cannot read"):
            holders_of(CARDS, listing, ())


def written(reservations: Reservations, held: Holding) -> None:
    async def write() -> None:
        async with reservations.locked() as table:
            table.write(reservations.made(held))

    asyncio.run(write())


def standing(reservations: Reservations) -> tuple[Holding, ...]:
    async def read() -> tuple[Holding, ...]:
        async with reservations.locked() as table:
            return tuple(each.held for each in table.reservations)

    return asyncio.run(read())


def test_what_another_crishim_puts_in_place_of_ours_is_seen(tmp_path: Path) -> None:
    mine, other = Reservations(tmp_path), Reservations(tmp_path)
    written(mine, ONE)
    assert standing(mine) == standing(other) == (ONE,)
    newer = replace(ONE, gen=2)
    written(other, newer)
    assert standing(mine) == (newer,)


def test_what_another_crishim_was_about_to_change_when_it_died_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = Reservations(tmp_path), Reservations(tmp_path)
    written(mine, ONE)
    times = tmp_path.stat().st_atime_ns, tmp_path.stat().st_mtime_ns
    with monkeypatch.context() as patch:
        patch.setattr(ReservationStore, "settle", None)  # it dies before it releases the lock
        with pytest.raises(TypeError):
            written(other, replace(ONE, key=ContainerKey("b")))
    os.utime(tmp_path, ns=times)  # all within one tick of the clock
    assert {each.key for each in standing(mine)} == {"a", "b"}


def test_one_that_failed_to_write_looks_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Reservations(tmp_path)
    written(mine, ONE)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr("partage_crishim.reservations.write_whole", full)
        with pytest.raises(OSError, match="No space"):
            written(mine, replace(ONE, key=ContainerKey("b")))
    assert standing(mine) == (ONE,)


def test_what_somebody_took_away_by_hand_stands_no_more(tmp_path: Path) -> None:
    mine = Reservations(tmp_path)
    written(mine, ONE)
    assert standing(mine) == (ONE,)
    os.utime(tmp_path, ns=(0, 0))
    assert standing(mine) == (ONE,)
    (tmp_path / "a").unlink()
    assert standing(mine) == ()


def test_a_folder_that_was_cleared_is_begun_anew(tmp_path: Path) -> None:
    folder = tmp_path / "reserved"
    mine, other = Reservations(folder), Reservations(folder)
    written(mine, ONE)
    shutil.rmtree(folder)
    written(other, replace(ONE, key=ContainerKey("b")))
    assert {each.key for each in standing(mine)} == {"b"}


def test_our_own_reservation_is_not_read_from_the_disk_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = Reservations(tmp_path)
    written(mine, ONE)
    monkeypatch.setattr("partage_crishim.reservations._DECODER", None)
    assert standing(mine) == (ONE,)


def test_a_horizon_that_another_crishim_moved_is_seen(tmp_path: Path) -> None:
    mine, other = Reservations(tmp_path), Reservations(tmp_path)

    async def moved(began_s: float) -> float:
        async with other.locked() as table:
            reservation = other.made(ONE)
            table.write(reservation)
            table.drop([reservation], Listing(began_s=began_s, containers=()))
            assert table.watermark_s == began_s
        async with mine.locked() as table:
            return table.watermark_s

    assert [asyncio.run(moved(began_s)) for began_s in (5.0, 7.5)] == [5.0, 7.5]
