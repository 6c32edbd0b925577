"""Waiting for room: first come, first served, and what is granted is free when the container comes."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from partage_oci import queue as queue_module
from partage_oci.placement import Placement
from partage_oci.queue import Queue
from partage_oci.shortage import NoRoom
from partage_oci.words import asked_of
from partage_plugins.api import Allocation, PodRequest, PodUid
from partage_plugins.errors import PluginHung, Refused
from unit.oci.test_holds import NODE, inventory, registry

KEEP_S = 30.0


class Site:
    """A card that is completely taken."""

    def __init__(self) -> None:
        self.placement = Placement(NODE, registry())
        self.placement.take_in(inventory(1))
        self.now_s = 0.0
        self.queue = Queue(self.placement, keep_s=KEEP_S, clock=lambda: self.now_s)
        self.said: list[tuple[str, str]] = []
        self.hold("first", 1000)

    def request(self, id_: str, share: int) -> PodRequest:
        asked = asked_of([f"PARTAGE_SHARE={share}", "PARTAGE_MEMORY=1g"], {})
        assert asked is not None
        return self.placement.request(asked.pod(id_, memory_bytes=None))

    def hold(self, id_: str, share: int) -> None:
        self.placement.place(self.request(id_, share))

    def fits(self, share: int) -> bool:
        return self.placement.why_not(self.request("other", share)) is None

    def free(self, id_: str) -> None:
        self.placement.release(PodUid(id_))
        self.queue.look()

    async def waiting(self, id_: str, share: int) -> asyncio.Task[None]:
        waits = partial(self._say, id_)
        task = asyncio.create_task(self.queue.wait(self.request(id_, share), waits))
        await asyncio.sleep(0)
        return task

    def _say(self, id_: str, why: str) -> None:
        self.said.append((id_, why))


@pytest.fixture
def site() -> Site:
    return Site()


async def test_where_there_is_room_nobody_waits(site: Site) -> None:
    site.free("first")
    await (await site.waiting("a", 600))
    assert site.said == []


async def test_who_came_first_is_first_even_where_a_later_one_would_fit(site: Site) -> None:
    large, small = await site.waiting("large", 900), await site.waiting("small", 100)
    assert [(id_, why.partition(";")[0]) for id_, why in site.said] == [
        ("large", "no card has a share of 900 milli left"),
        ("small", "1 came before and waits for room, too"),
    ]
    site.free("first")
    await asyncio.gather(large, small)
    assert not site.fits(1)


async def test_a_small_one_stays_behind_a_large_one(site: Site) -> None:
    site.placement.release(PodUid("first"))
    site.hold("first", 500)
    large, small = await site.waiting("large", 900), await site.waiting("small", 100)
    assert not small.done()
    large.cancel()
    await asyncio.gather(large, return_exceptions=True)
    await small


async def test_what_is_kept_is_for_the_first_container_with_the_same_request(site: Site) -> None:
    site.free("first")
    await (await site.waiting("a", 600))
    assert not site.fits(600)
    site.queue.claim(site.request("another", 500))
    assert not site.fits(600)
    site.queue.claim(site.request("mine", 600))
    assert site.fits(600)


async def test_what_is_kept_is_free_again_after_a_while(site: Site) -> None:
    site.free("first")
    await (await site.waiting("a", 600))
    site.now_s = KEEP_S - 1
    site.queue.look()
    assert not site.fits(600)
    site.now_s = KEEP_S
    site.queue.look()
    assert site.fits(600)


async def test_it_is_kept_from_when_it_was_free_and_not_from_when_it_was_asked_for(site: Site) -> None:
    first, second = await site.waiting("large", 900), await site.waiting("a", 600)
    site.placement.release(PodUid("first"))
    site.hold("first", 300)
    site.now_s = 10 * KEEP_S
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await second
    site.queue.look()
    assert not site.fits(600)


async def test_why_one_waits_is_said_once(site: Site) -> None:
    waiting = await site.waiting("a", 600)
    site.queue.look()
    assert len(site.said) == 1
    waiting.cancel()


async def test_what_would_never_fit_is_refused_at_once(site: Site) -> None:
    asked = asked_of(["PARTAGE_SHARE=1000", "PARTAGE_CARDS=2"], {})
    assert asked is not None
    request = site.placement.request(asked.pod("never", memory_bytes=None))
    with pytest.raises(Refused, match="too few cards"):
        await site.queue.wait(request, lambda _: None)


async def test_a_plugins_fault_with_one_request_is_that_ones_alone(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    broken, other = await site.waiting("broken", 600), await site.waiting("other", 600)
    placed = site.placement.place

    def place(request: PodRequest) -> Allocation | NoRoom:
        if request.pod.uid == "broken":
            raise PluginHung("gpu", "partage_fits", "too slow")
        return placed(request)

    monkeypatch.setattr(site.placement, "place", place)
    site.free("first")
    with pytest.raises(PluginHung):
        await broken
    await other


async def test_only_so_many_wait(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_module, "MOST_WAITING", 1)
    waiting = await site.waiting("a", 600)
    with pytest.raises(Refused, match="1 wait for room already"):
        await (await site.waiting("b", 600))
    waiting.cancel()
