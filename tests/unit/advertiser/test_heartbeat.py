"""The Lease, before an API server that does not always take it."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable

from partage_advertiser.heartbeat import Heartbeat
from partage_base.kube import ApiServer, lease_path
from support.fake_api import Drop, FakeApi, Refuse
from support.kube import told, until

SYSTEM = "partage-system"
LEASE = lease_path(SYSTEM, "n1")
EVERY_S = 0.01


def beating(trouble: Callable[[FakeApi], None]) -> tuple[Counter[str], list[str]]:
    """What was asked once three beats had succeeded and trouble came, up to the next success; and what came of it."""
    asked, outcomes = Counter[str](), list[str]()

    async def story(api: FakeApi, server: ApiServer) -> None:
        heartbeat = Heartbeat(
            server,
            namespace=SYSTEM,
            node="n1",
            every_s=EVERY_S,
            node_uid=lambda: "",
            beats=lambda: True,
            beaten=outcomes.append,
        )
        running = asyncio.create_task(heartbeat.run())
        await until(lambda: len(outcomes) >= 3)
        outcomes.clear()
        before = len(api.asked)
        trouble(api)
        await until(lambda: "failed" in outcomes and outcomes[-1] == "done")
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        asked.update(each.method for each in api.asked[before:])

    told(story)
    return asked, outcomes


def test_a_beat_that_is_turned_away_costs_no_further_call() -> None:
    asked, _ = beating(lambda api: api.expect(Refuse(429, retry_after="0"), method="PUT", times=3))
    assert set(asked) == {"PUT"}


def test_a_beat_that_may_have_been_heard_is_mended_by_asking() -> None:
    asked, _ = beating(lambda api: api.expect(Drop(after_success=True), method="PUT"))
    assert asked["GET"] == 1


def test_a_lease_that_was_removed_is_made_anew() -> None:
    def removed(api: FakeApi) -> None:
        api.expect(Refuse(500), method="PUT")
        api.objects.delete(LEASE)

    asked, _ = beating(removed)
    assert asked["POST"] == 1
