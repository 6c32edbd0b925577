"""Plugins hear of each container that is gone at least once, and of none that lives or is being created."""

from __future__ import annotations

import asyncio

import pytest

from partage_crishim.decisions import Ending, Rewrite
from partage_crishim.rules.errors import NodeNotReady
from partage_plugins.api import ContainerKey, ContainerName, PodUid
from partage_plugins.codecs import container_key
from partage_plugins.errors import PluginFailed, PluginHung
from unit.crishim.rules.allocations import allocation, grant, pod, signed
from unit.crishim.rules.requests import Create
from unit.crishim.rules.stage import Crishim, Stage


def key(uid: str, attempt: int = 0) -> ContainerKey:
    return container_key(PodUid(uid), ContainerName("main"), attempt)


def test_one_that_the_runtime_no_longer_lists(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    crishim.rewrite(pod("b"))
    crishim.collect()
    assert stage.fake.told == []
    del stage.runtime.listed["c-a-main-0"]
    crishim.collect()
    crishim.collect()
    assert stage.fake.told == [key("a")]


def test_one_that_ended_and_is_still_listed_is_not_gone(stage: Stage, crishim: Crishim) -> None:
    decision = crishim.held_back(pod("a"))
    stage.create(decision.message, pod("a"), exited=True)
    decision.ended(Ending.DONE)
    crishim.collect()
    assert stage.fake.told == []


def test_one_whose_create_failed(stage: Stage, crishim: Crishim) -> None:
    crishim.held_back(pod("a")).ended(Ending.FAILED)
    crishim.collect()
    assert stage.fake.told == [key("a")]


def test_one_that_was_refused_after_plugins_were_asked(stage: Stage, crishim: Crishim) -> None:
    stage.fake.answer = PluginFailed("gpu", "partage_adjust", "raised X", "y")
    crishim.refusal(pod("a"))
    crishim.collect()
    assert stage.fake.told == [key("a")]


def test_none_that_was_refused_before(stage: Stage, crishim: Crishim) -> None:
    crishim.refusal(Create(uid="a", annotations=signed(allocation(grant(share=100)))))
    crishim.collect()
    assert stage.fake.told == []


def test_none_whose_create_is_in_flight_or_in_doubt(stage: Stage, crishim: Crishim) -> None:
    crishim.held_back(pod("a"))
    crishim.held_back(pod("b")).ended(Ending.UNKNOWN)
    crishim.collect()
    stage.crishim().collect()
    assert stage.fake.told == []
    stage.now_s += 1000
    crishim.collect()
    assert sorted(stage.fake.told) == sorted([key("a"), key("b")])


def test_one_that_went_while_no_crishim_ran(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    stage.runtime.listed.clear()
    stage.now_s += 1000
    stage.crishim().collect()
    assert stage.fake.told == [key("a")]


def test_what_fails_is_told_again(stage: Stage, crishim: Crishim) -> None:
    for uid in ("a", "b"):
        crishim.held_back(pod(uid)).ended(Ending.FAILED)
    stage.fake.deaf = PluginFailed("gpu", "partage_removed", "raised X", "y")
    crishim.collect()
    assert stage.faults == [stage.fake.deaf, stage.fake.deaf]
    stage.fake.deaf = None
    crishim.collect()
    assert sorted(stage.fake.told) == sorted([key("a"), key("b")])


def test_a_plugin_that_hangs_is_not_asked_for_every_container(stage: Stage, crishim: Crishim) -> None:
    for uid in ("a", "b", "c"):
        crishim.held_back(pod(uid)).ended(Ending.FAILED)
    stage.fake.deaf = PluginHung("gpu", "partage_removed", "took longer than 2 s and was killed")
    crishim.collect()
    assert len(stage.faults) == 1


def test_one_that_always_fails_holds_up_no_other(
    stage: Stage, crishim: Crishim, monkeypatch: pytest.MonkeyPatch
) -> None:
    for uid in ("a", "b", "c"):
        crishim.held_back(pod(uid)).ended(Ending.FAILED)
    poison = min(crishim.records.adjusted())
    told: list[ContainerKey] = []

    async def removed(asked: ContainerKey) -> None:
        if asked == poison:
            raise PluginHung("gpu", "partage_removed", "took longer than 2 s and was killed")
        told.append(asked)

    monkeypatch.setattr(stage.host, "removed", removed)
    for _ in range(4):
        crishim.collect()
    assert sorted([*told, poison]) == sorted(key(uid) for uid in ("a", "b", "c"))
    assert crishim.records.adjusted() == (poison,)


def test_one_that_is_made_again_under_the_same_key_is_left_alone(stage: Stage, crishim: Crishim) -> None:
    crishim.held_back(pod("a")).ended(Ending.FAILED)
    crishim.held_back(pod("a"))
    crishim.collect()
    assert stage.fake.told == []


async def test_a_create_waits_until_the_cleaning_up_after_the_last_one_is_over(
    stage: Stage, crishim: Crishim, monkeypatch: pytest.MonkeyPatch
) -> None:
    (await rewritten(crishim)).ended(Ending.FAILED)
    order: list[str] = []
    cleaning, go_on = asyncio.Event(), asyncio.Event()

    async def removed(_: ContainerKey) -> None:
        cleaning.set()
        await go_on.wait()
        order.append("removed")

    async def asked() -> None:
        order.append("adjusted")

    monkeypatch.setattr(stage.host, "removed", removed)
    stage.fake.meanwhile = asked
    collecting = asyncio.ensure_future(crishim.collector.once())
    await cleaning.wait()
    making = asyncio.ensure_future(crishim.decided(pod("a")))
    for _ in range(10):
        await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(collecting, making)
    assert order == ["removed", "adjusted"]
    assert crishim.records.adjusted() == (key("a"),)


async def rewritten(crishim: Crishim) -> Rewrite:
    decision = await crishim.decided(pod("a"))
    assert isinstance(decision, Rewrite)
    return decision


def test_without_the_runtime_nothing_is_taken_for_gone(stage: Stage, crishim: Crishim) -> None:
    crishim.rewrite(pod("a"))
    stage.runtime.away = True
    with pytest.raises(NodeNotReady):
        crishim.collect()
    assert stage.fake.told == []


def test_with_nothing_to_do_the_runtime_is_not_asked(stage: Stage, crishim: Crishim) -> None:
    stage.runtime.away = True
    crishim.collect()


@pytest.mark.slow
async def test_it_comes_soon_after_a_failure_and_lives_through_trouble(stage: Stage, crishim: Crishim) -> None:
    running = asyncio.ensure_future(crishim.collector.run())
    decision = await rewritten(crishim)
    stage.runtime.away = True
    decision.ended(Ending.FAILED)
    while not stage.faults:  # noqa: ASYNC110  what is waited for has no event
        await asyncio.sleep(0.005)
    stage.runtime.away = False
    while not stage.fake.told:
        crishim.reservations.clean_up.set()
        await asyncio.sleep(0.005)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert isinstance(stage.faults[0], NodeNotReady)
    assert stage.fake.told[0] == key("a")
