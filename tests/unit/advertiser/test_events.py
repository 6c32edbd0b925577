"""Events on the Node, before an API server that does not take them at once."""

from __future__ import annotations

import asyncio
import contextlib

from partage_advertiser.events import Events
from partage_advertiser.happenings import Happening
from partage_base.kube import ApiServer, events_path
from support.fake_api import FakeApi, Refuse
from support.kube import told, until

LOST = Happening("Warning", "CardLost", "Card 0 is lost.")
EVENTS = events_path("default")


def outcomes_of(*refusals: str) -> tuple[list[str], list[float]]:
    """What became of one event after so many refusals with that Retry-After, and the waits between."""
    outcomes: list[str] = []
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    async def story(api: FakeApi, server: ApiServer) -> None:
        for retry_after in refusals:
            api.expect(Refuse(429, retry_after=retry_after), method="POST")
        events = Events(server, "n1", sent=outcomes.append, sleep=sleep)
        events.tell(LOST)
        running = asyncio.create_task(events.run())
        await until(lambda: outcomes)
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running

    told(story)
    return outcomes, waits


def test_an_event_is_sent_without_waiting() -> None:
    assert outcomes_of() == (["sent"], [])


def test_a_server_that_wants_to_be_left_alone_is_left_alone_for_as_long_as_it_says() -> None:
    outcomes, waits = outcomes_of("30", "30")
    assert outcomes == ["sent"]
    assert all(wait_s > 30 for wait_s in waits)


def test_advertisers_that_were_turned_away_together_do_not_come_back_together() -> None:
    firsts = {outcomes_of("1")[1][0] for _ in range(3)}
    assert len(firsts) == 3


def test_an_event_that_is_refused_again_and_again_is_dropped() -> None:
    assert outcomes_of("1", "1", "1")[0] == ["dropped"]
