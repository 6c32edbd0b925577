"""The Lease, before an API server that does not always take it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from partage_advertiser.heartbeat import Heartbeat
from partage_base.kube import ApiServer, lease_path
from partage_plugins.vocabulary.keys import VERSIONS
from support.fake_api import Drop, FakeApi, Refuse
from support.kube import beside, until

SYSTEM = "partage-system"
LEASE = lease_path(SYSTEM, "n1")
EVERY_S = 0.01


async def beating(api: FakeApi, server: ApiServer, trouble: Callable[[], object]) -> Counter[str]:
    """What was asked once three beats had succeeded and trouble came, up to the next success."""
    outcomes: list[str] = []
    heartbeat = Heartbeat(
        server,
        namespace=SYSTEM,
        node="n1",
        every_s=EVERY_S,
        node_uid=lambda: "",
        beats=lambda: True,
        keys=lambda: (),
        beaten=outcomes.append,
    )
    async with beside(heartbeat.run()):
        await until(lambda: len(outcomes) >= 3)
        outcomes.clear()
        before = len(api.asked)
        trouble()
        await until(lambda: "failed" in outcomes and outcomes[-1] == "done")
    return Counter(each.method for each in api.asked[before:])


async def test_a_beat_that_is_turned_away_costs_no_further_call(api: FakeApi, server: ApiServer) -> None:
    refused = Refuse(429, retry_after="0")
    asked = await beating(api, server, lambda: api.expect(refused, method="PUT", times=3))
    assert set(asked) == {"PUT"}


async def test_a_beat_that_may_have_been_heard_is_mended_by_asking(api: FakeApi, server: ApiServer) -> None:
    asked = await beating(api, server, lambda: api.expect(Drop(after_success=True), method="PUT"))
    assert asked["GET"] == 1


async def test_a_lease_that_was_removed_is_made_anew(api: FakeApi, server: ApiServer) -> None:
    def removed() -> None:
        api.expect(Refuse(500), method="PUT")
        api.objects.delete(LEASE)

    assert (await beating(api, server, removed))["POST"] == 1


async def test_a_beat_says_which_versions_run(api: FakeApi, server: ApiServer) -> None:
    heartbeat = Heartbeat(
        server,
        namespace=SYSTEM,
        node="n1",
        every_s=EVERY_S,
        node_uid=lambda: "",
        beats=lambda: True,
        keys=lambda: (),
        versions=lambda: {"crishim": "0.2.0", "advertiser": "0.1.0"},
    )
    async with beside(heartbeat.run()):
        await until(lambda: api.count("PUT", LEASE))
    assert api.objects.get(LEASE)["metadata"]["annotations"][VERSIONS] == "advertiser=0.1.0,crishim=0.2.0"
