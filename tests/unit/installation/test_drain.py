"""Pods that hold cards leave a node before partage does, within their disruption budgets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import Any

import pytest

from partage_base.kube import ApiServer
from partage_cli.installation.drain import ClaimName, Drain, withdraw
from partage_cli.installation.errors import PodsStay
from partage_plugins.api.keys import ALLOCATION, INVENTORY
from support.fake_api import FakeApi, Refuse
from support.kube import access_to

OVER: Any = {"status": {"phase": "Succeeded"}}
PODS = "/api/v1/namespaces/team/pods"


class Time:
    """Advances with each sleep; an event may happen in each second."""

    def __init__(self) -> None:
        self.now = 0.0
        self.happens: dict[float, Callable[[], object]] = {}

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        for at in [at for at in self.happens if at <= self.now]:
            self.happens.pop(at)()
        await asyncio.sleep(0)


def add(
    api: FakeApi, name: str, *, node: str = "n1", holds: bool = True, spec: dict[str, Any] | None = None, **more: Any
) -> None:
    annotations = {ALLOCATION: "{}"} if holds else {}
    metadata = {"name": name, "namespace": "team", "annotations": annotations}
    api.objects.create(PODS, {"metadata": metadata, "spec": {"nodeName": node, **(spec or {})}, **more})


def names(api: FakeApi) -> list[str]:
    return [pod["metadata"]["name"] for pod in api.objects.select(PODS, {})]


async def drained(
    api: FakeApi, time: Time | None = None, *, within_s: float = 60.0, claims: Collection[ClaimName] = ()
) -> list[str]:
    """The messages of a drain."""
    said: list[str] = []
    clock = time or Time()
    async with ApiServer(access_to(api.url), user_agent="test") as server:
        await Drain(server, "n1", say=said.append, clock=clock, sleep=clock.sleep, claims=lambda: claims).run(within_s)
    return said


async def test_pods_with_cards_on_this_node_are_asked_to_leave_and_no_others(api: FakeApi) -> None:
    add(api, "here")
    add(api, "elsewhere", node="n2")
    add(api, "without", holds=False)
    add(api, "over", status={"phase": "Succeeded"})
    assert await drained(api) == ["team/here is asked to leave"]
    assert names(api) == ["elsewhere", "over", "without"]


async def test_a_pod_that_is_placed_while_the_node_is_drained_leaves_as_well(api: FakeApi) -> None:
    time = Time()
    time.happens[1.5] = lambda: add(api, "late")
    await drained(api, time)
    assert names(api) == []


async def test_a_budget_that_says_no_is_asked_again_and_its_words_are_passed_on_once(api: FakeApi) -> None:
    add(api, "kept")
    api.expect(Refuse(429, "TooManyRequests", "the budget allows none"), method="POST", times=2)
    said = await drained(api)
    assert said == ["team/kept stays for now: the budget allows none", "team/kept is asked to leave"]
    assert names(api) == []


async def test_pods_that_stay_too_long_are_named_with_the_reason(api: FakeApi) -> None:
    add(api, "kept")
    api.expect(Refuse(429, "TooManyRequests", "the budget allows none"), method="POST", times=100)
    with pytest.raises(PodsStay, match=r"after 30 s .*: team/kept \(the budget allows none\); .*partage node resume"):
        await drained(api, within_s=30)


async def test_a_pod_on_its_way_out_is_not_asked_again(api: FakeApi) -> None:
    time = Time()
    add(api, "going")
    api.objects.patch(f"{PODS}/going", {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    time.happens[5.0] = lambda: api.objects.delete(f"{PODS}/going", None)
    await drained(api, time)
    assert not api.count("POST", f"{PODS}/going/eviction")


async def test_an_api_server_that_is_away_for_a_while_is_waited_for(api: FakeApi) -> None:
    add(api, "here")
    api.expect(Refuse(503, "ServiceUnavailable"), method="GET", times=3)
    assert (await drained(api))[-1] == "team/here is asked to leave"


async def test_the_cluster_forgets_the_cards_and_what_else_the_node_says_stays(api: FakeApi) -> None:
    annotations = {INVENTORY: "{}", "team": "a"}
    api.objects.create("/api/v1/nodes", {"metadata": {"name": "n1", "annotations": annotations}})
    async with ApiServer(access_to(api.url), user_agent="test") as server:
        for _ in range(2):
            await withdraw(server, "n1")
        await withdraw(server, "n2")  # which has left the cluster
    assert api.objects.select("/api/v1/nodes", {})[0]["metadata"]["annotations"] == {"team": "a"}


async def test_pods_with_claims_on_cards_of_the_node_leave_too_and_those_of_other_drivers_stay(api: FakeApi) -> None:
    add(api, "own", holds=False, status={"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "own-gpu-x"}]})
    add(api, "named", holds=False, spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]})
    add(api, "part", holds=False, status={"extendedResourceClaimStatus": {"resourceClaimName": "part-x"}})
    add(api, "network", holds=False, spec={"resourceClaims": [{"name": "port", "resourceClaimName": "port"}]})
    add(api, "ended", holds=False, spec={"resourceClaims": [{"name": "gpu", "resourceClaimName": "shared"}]}, **OVER)
    claims = {ClaimName("team", name) for name in ("own-gpu-x", "shared", "part-x")} | {ClaimName("b", "port")}
    await drained(api, claims=claims)
    assert set(names(api)) == {"network", "ended"}
