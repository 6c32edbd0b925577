"""Takes the screenshot of the page: a real browser on a cluster of a fake API server and fake brokers.

python -P tests/support/ui_picture.py docs/ui.png
"""

from __future__ import annotations

import asyncio
import math
import sys
import time
from pathlib import Path
from typing import Final, NamedTuple

from partage_ui.history import MINUTES, History
from rig.programs import ensure
from support import broker
from support.browser import browser
from support.ui_stage import UiApi, a_card, a_grant, held, serving, told_of

TOKEN: Final = "operator"  # noqa: S105 - of the fake API server


class Tenant(NamedTuple):
    """A container with a part of a card, and its use of it."""

    namespace: str
    name: str
    card: int
    milli: int
    limit: int
    gib: int
    wanted: float
    got: float
    holds_gib: float
    refused: int = 0


TENANTS: Final = (
    Tenant("vision", "train-7f9c-0", 0, 500, 1000, 40, 0.90, 0.71, 31),
    Tenant("vision", "train-7f9c-1", 1, 800, 1000, 60, 0.95, 0.61, 59, 14),
    Tenant("search", "ranker-5d-x2", 2, 250, 400, 16, 0.20, 0.20, 9),
    Tenant("search", "ranker-5d-x9", 2, 250, 250, 16, 0.50, 0.25, 15.9, 3),
    Tenant("speech", "notebook-0", 0, 300, 500, 20, 0.02, 0.02, 2.5),
)


def an_hour_ago(history: History) -> None:
    """Fill the history as if the page had been open for an hour."""
    now = time.time()
    for tenant in TENANTS:
        card = a_card(tenant.card)
        key = broker.container(broker.pod(tenant.name, tenant.namespace)).key
        for minute in range(MINUTES):
            busy = max(0.0, math.sin(minute / 5 + len(tenant.name)))
            at_s = now - 60 * (MINUTES - minute)
            history.note((key, card.id), at_s, wanted=tenant.wanted * busy, got=tenant.got * busy)


async def draw() -> bytes:
    chromium = (await asyncio.to_thread(ensure, "chromium"))["chromium"]
    async with UiApi() as api:
        api.people.add(TOKEN, "operator", "*")
        cards = tuple(a_card(index) for index in range(4))
        api.add_node("n1", *cards)
        told = []
        for each in TENANTS:
            grant = a_grant(cards[each.card], milli=each.milli, limit=each.limit, gib=each.gib)
            api.add_running(each.namespace, each.name, "n1", grant)
            has = held(grant, wanted=each.wanted, got=each.got, gib=each.holds_gib, refused=each.refused)
            told.append(broker.container(broker.pod(each.name, each.namespace), has))
        api.tells["n1"] = told_of(cards, *told)
        async with serving(api, began=an_hour_ago) as site, browser(chromium) as tab:
            await tab.does("Page.enable")
            await tab.looks(width=1280, height=640)
            await tab.opens(f"http://127.0.0.1:{site.port}/")
            await tab.says(f"document.getElementById('token').value = '{TOKEN}'")
            await tab.says("document.querySelector('main form button').click()")
            await tab.until("location.pathname === '/waiting' && document.readyState === 'complete'")
            await tab.opens(f"http://127.0.0.1:{site.port}/workloads")
            await tab.until(f"document.querySelectorAll('tbody tr').length === {len(TENANTS)}")
            await tab.until("document.body.innerText.includes('milli short')")
            return await tab.picture()


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(asyncio.run(draw()))
