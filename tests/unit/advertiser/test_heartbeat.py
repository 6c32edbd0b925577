"""When the Lease is renewed and when not, which uid it belongs to, and how it recovers from failures."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from partage_advertiser import heartbeat
from partage_advertiser.heartbeat import Heartbeat
from partage_base.kube import ApiServer, lease_path, leases_path
from partage_plugins.api.keys import KEYS, RESIZED_PODS, SUSPENDED_PODS, VERSIONS
from support.fake_api import Drop, FakeApi, Refuse
from support.kube import beside, until

SYSTEM = "partage-system"
LEASE = lease_path(SYSTEM, "n1")
EVERY_S = 0.01


@dataclass
class Beating:
    """A running heartbeat, and the controls of a test."""

    api: FakeApi
    is_true: bool = True
    asked: int = 0
    """How often it was asked whether it beats."""
    uid: str = "uid-of-n1"
    keys: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    suspended: str = ""
    outcomes: list[str] = field(default_factory=list[str])

    def lease(self) -> dict[str, Any]:
        return self.api.objects.get(LEASE)

    def owner(self) -> str:
        return str(self.lease()["metadata"]["ownerReferences"][0]["uid"])

    def is_to_beat(self) -> bool:
        self.asked += 1
        return self.is_true

    async def is_asked(self, more: int = 2) -> None:
        wanted = self.asked + more
        await until(lambda: self.asked >= wanted)

    async def beats(self, more: int = 2) -> None:
        """Wait until it has beaten `more` times."""
        wanted = self.outcomes.count("done") + more
        await until(lambda: self.outcomes.count("done") >= wanted)

    async def after(self, trouble: Callable[[], object]) -> Counter[str]:
        """The requests after a failure, up to the next success."""
        await self.beats()
        self.outcomes.clear()
        before = len(self.api.asked)
        trouble()
        await until(lambda: "failed" in self.outcomes and self.outcomes[-1] == "done")
        return Counter(each.method for each in self.api.asked[before:])


@pytest.fixture
async def beating(api: FakeApi, server: ApiServer) -> AsyncIterator[Beating]:
    beating = Beating(api)
    beats = Heartbeat(
        server,
        namespace=SYSTEM,
        node="n1",
        every_s=EVERY_S,
        node_uid=lambda: beating.uid,
        beats=beating.is_to_beat,
        keys=lambda: beating.keys,
        versions=lambda: beating.versions,
        suspended=lambda: beating.suspended,
        beaten=beating.outcomes.append,
    )
    async with beside(beats.run()):
        yield beating


async def test_it_beats_only_while_what_is_told_is_true(beating: Beating) -> None:
    await beating.beats()
    beating.is_true = False
    await beating.is_asked()  # one may be in progress
    before = beating.api.objects.version
    await beating.is_asked(10)
    assert beating.api.objects.version == before
    beating.is_true = True
    await beating.beats()


async def test_each_beat_says_which_keys_the_node_trusts(beating: Beating) -> None:
    await beating.beats()
    assert beating.lease()["metadata"]["annotations"][KEYS] == ""
    beating.keys = ("b" * 16, "a" * 16)
    await beating.beats()
    assert beating.lease()["metadata"]["annotations"][KEYS] == f"{'a' * 16},{'b' * 16}"


async def test_a_beat_is_one_call(beating: Beating) -> None:
    await beating.beats()
    before = len(beating.api.asked)
    await beating.beats(5)
    assert {each.method for each in beating.api.asked[before:]} == {"PUT"}


async def test_a_lease_that_others_changed_meanwhile_is_renewed_and_keeps_what_the_scheduler_wrote(
    beating: Beating,
) -> None:
    await beating.beats()
    beating.api.objects.patch(LEASE, {"metadata": {"annotations": {RESIZED_PODS: "{}"}, "labels": {"by": "another"}}})
    await beating.beats(5)
    assert beating.lease()["metadata"]["annotations"][RESIZED_PODS] == "{}"
    assert "failed" not in beating.outcomes


async def test_a_lease_of_a_life_before_is_taken_over_with_the_time_of_its_making(beating: Beating) -> None:
    before = {"acquireTime": "2026-01-01T00:00:00.000000Z"}
    beating.api.objects.create(leases_path(SYSTEM), {"metadata": {"name": "n1"}, "spec": before})
    await beating.beats()
    assert beating.lease()["spec"]["acquireTime"] == "2026-01-01T00:00:00.000000Z"
    assert beating.lease()["spec"]["renewTime"] > "2026-01-01"


async def test_it_follows_the_node_object_that_is_there_now(beating: Beating) -> None:
    await beating.beats()
    assert beating.owner() == "uid-of-n1"
    beating.uid = "uid-of-another"
    await beating.beats()
    assert beating.owner() == "uid-of-another"


async def test_a_beat_says_which_versions_run(beating: Beating) -> None:
    beating.versions = {"crishim": "0.2.0", "advertiser": "0.1.0"}
    await beating.beats()
    assert beating.lease()["metadata"]["annotations"][VERSIONS] == "advertiser=0.1.0,crishim=0.2.0"


async def test_a_beat_that_is_turned_away_costs_no_further_call(api: FakeApi, beating: Beating) -> None:
    refused = Refuse(429, retry_after="0")
    assert set(await beating.after(lambda: api.expect(refused, method="PUT", times=3))) == {"PUT"}


async def test_a_beat_that_may_have_been_heard_is_mended_by_asking(api: FakeApi, beating: Beating) -> None:
    assert (await beating.after(lambda: api.expect(Drop(after_success=True), method="PUT")))["GET"] == 1


async def test_a_lease_that_was_removed_is_made_anew(api: FakeApi, beating: Beating) -> None:
    def removed() -> None:
        api.expect(Refuse(500), method="PUT")
        api.objects.delete(LEASE)

    assert (await beating.after(removed))["POST"] == 1


async def test_what_became_of_suspended_pods_is_published_at_once_and_goes_with_them(
    api: FakeApi, server: ApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(heartbeat, "_LOOK_S", 0.01)
    beating = Beating(api)
    seldom = Heartbeat(
        server,
        namespace=SYSTEM,
        node="n1",
        every_s=3600,
        node_uid=lambda: beating.uid,
        beats=beating.is_to_beat,
        keys=lambda: beating.keys,
        suspended=lambda: beating.suspended,
        beaten=beating.outcomes.append,
    )
    async with beside(seldom.run()):
        await beating.beats(1)
        assert SUSPENDED_PODS not in beating.lease()["metadata"]["annotations"]
        for text in ('{"a":{"gen":2}}', '{"a":{"gen":2,"is_done":true}}'):
            beating.suspended = text
            await beating.beats(1)
            assert beating.lease()["metadata"]["annotations"][SUSPENDED_PODS] == text
        beating.suspended = ""
        await beating.beats(1)
        assert SUSPENDED_PODS not in beating.lease()["metadata"]["annotations"]
