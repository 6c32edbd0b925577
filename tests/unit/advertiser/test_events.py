"""Events on the Node, with an API server that does not accept them at once."""

from __future__ import annotations

import asyncio

from partage_advertiser.condition_changes import ConditionChange
from partage_advertiser.events import Events
from partage_base.kube import ApiServer, events_path
from support.fake_api import FakeApi, Refuse
from support.kube import beside, until

LOST = ConditionChange("Warning", "CardLost", "Card 0 is lost.")
EVENTS = events_path("default")


async def outcomes_of(api: FakeApi, server: ApiServer, *refusals: str) -> tuple[list[str], list[float]]:
    """The outcomes of one event after these refusals with their Retry-After, and the waits between."""
    outcomes: list[str] = []
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    for retry_after in refusals:
        api.expect(Refuse(429, retry_after=retry_after), method="POST")
    events = Events(server, "n1", sent=outcomes.append, sleep=sleep)
    events.tell(LOST)
    async with beside(events.run()):
        await until(lambda: outcomes)
    return outcomes, waits


async def test_an_event_is_sent_without_waiting(api: FakeApi, server: ApiServer) -> None:
    assert await outcomes_of(api, server) == (["sent"], [])


async def test_a_server_is_left_alone_for_as_long_as_it_says(api: FakeApi, server: ApiServer) -> None:
    outcomes, waits = await outcomes_of(api, server, "30", "30")
    assert outcomes == ["sent"]
    assert all(wait_s > 30 for wait_s in waits)


async def test_advertisers_that_were_turned_away_together_do_not_come_back_together(
    api: FakeApi, server: ApiServer
) -> None:
    waits = [await outcomes_of(api, server, "1") for _ in range(3)]
    assert len({first for _, (first, *_) in waits}) == 3


async def test_an_event_that_is_refused_again_and_again_is_dropped(api: FakeApi, server: ApiServer) -> None:
    assert (await outcomes_of(api, server, "1", "1", "1"))[0] == ["dropped"]
