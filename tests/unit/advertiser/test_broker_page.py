"""The advertiser's page of the broker's report: as the broker wrote it, requested once a second at most."""

from __future__ import annotations

import asyncio
from pathlib import Path

from partage_advertiser.broker_page import BrokerPage
from partage_isolation.wire.messages import GetReport, answer_line
from support.broker import FakeBroker, container, held, pod, told

HOW = told(container(pod(), held()))


async def test_it_is_what_the_broker_wrote_and_many_who_ask_cost_one_question(tmp_path: Path) -> None:
    now = [100.0]
    with FakeBroker(tmp_path, HOW) as broker:
        page = BrokerPage(tmp_path, clock=lambda: now[0])
        answers = await asyncio.gather(*(page() for _ in range(5)))
        assert {(each.status, each.body) for each in answers} == {(200, answer_line(HOW))}
        assert broker.asked == [GetReport()]
        now[0] += 1.0
        await page()
        assert broker.asked == [GetReport(), GetReport()]


async def test_a_broker_that_is_away_or_answers_nothing_is_said_to_be(tmp_path: Path) -> None:
    away = await BrokerPage(tmp_path)()
    assert (away.status, away.body) == (503, b"no broker answers: No such file or directory\n")
    with FakeBroker(tmp_path, b"half a line"):
        cut = await BrokerPage(tmp_path)()
        assert (cut.status, cut.body[:19]) == (503, b"no broker answers: ")
