"""The manager is killed at each call that it makes of the runtime, before and after it had its effect."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.life import phase_of
from partage_cli.machine.manager.managed import ManagedPod
from partage_cli.machine.pods.record import Restart
from partage_cli.machine.wire.messages import Run
from unit.machine.manager.runtime_model import Model
from unit.machine.manager.stage import Manager, given_milli, manager, pod, settled

Story = Callable[[Manager, Model], Awaitable[None]]


async def runs(found: Manager, _model: Model) -> None:
    await found.run(Run(pod=pod("a"), restart="always"))


async def fails_once(found: Manager, model: Model) -> None:
    await found.run(Run(pod=pod("a"), restart="always"))
    model.exit(model.running()[0], 1, ran_s=60)
    await settled(lambda: [each.attempt for each in model.running()] == [1])


async def is_stopped_and_started(found: Manager, model: Model) -> None:
    managed = await found.run(Run(pod=pod("a"), restart="always"))
    managed.stop(0)
    await managed.until(lambda: managed.is_at_rest)

    async def say(_: object) -> None:
        return None

    await found.runs.start(managed, say)


async def loses_power(found: Manager, model: Model) -> None:
    managed = await found.run(Run(pod=pod("a"), restart="always"))
    model.power_fails()
    managed.doubt()
    await settled(lambda: bool(model.running()))


async def ends_and_goes(found: Manager, model: Model) -> None:
    managed = await found.run(Run(pod=pod("a"), remove=True))
    model.exit(model.running()[0], 0)
    await managed.until(lambda: managed.is_gone)


async def is_removed(found: Manager, _model: Model) -> None:
    managed = await found.run(Run(pod=pod("a"), restart="always"))
    managed.remove(0)
    await managed.until(lambda: managed.is_gone)


@pytest.mark.parametrize("story", [runs, fails_once, is_stopped_and_started, loses_power, ends_and_goes, is_removed])
async def test_the_next_manager_completes_or_removes_what_it_finds(story: Story) -> None:
    dies_at = 0
    while True:
        dies_at += 1
        model = Model()
        async with manager(model, dies_at=dies_at) as first:
            telling = asyncio.ensure_future(story(first, model))
            dying = asyncio.create_task(first.line.died.wait())
            await asyncio.wait({telling, dying}, return_when=asyncio.FIRST_COMPLETED)
            has_died = first.line.died.is_set()
            first.line.died.set()
            for each in (telling, dying):
                each.cancel()
            await asyncio.gather(telling, dying, return_exceptions=True)
        where = f"{story.__name__}, killed at call {dies_at}: {first.line.calls[-3:]}"
        async with manager(model) as second:
            await second.pods.look()
            await second.pods.known()
            await settled(lambda: all(_has_settled(each) for each in second.pods.all))
            _require_whole(second, model, where)
            await _require_usable(second, model, where)
        if not has_died:
            return


def _has_settled(managed: ManagedPod) -> bool:
    return managed.is_at_rest or (managed.will == "run" and phase_of(managed.facts) == "running")


def _require_whole(found: Manager, model: Model, where: str) -> None:
    """Each pod has one sandbox; what runs holds its place, and nothing else does."""
    ready = [each for each in model.sandboxes.values() if each.ready]
    assert len(model.sandboxes) == len(found.pods.all), where
    assert given_milli(found) == {"GPU-0": 300 * len(ready)}, where
    assert len(model.running()) == len(ready), where
    assert len(model.containers) <= 1, where


async def _require_usable(found: Manager, model: Model, where: str) -> None:
    """Its name and its place are free once it is removed."""
    for each in found.pods.all:
        each.remove(0)
    await settled(lambda: not found.pods.all)
    assert model.sandboxes == {}, where
    await found.run(Run(pod=pod("a", share=1000)))


@pytest.mark.parametrize("restart", ["no", "always"])
async def test_a_pod_that_was_acknowledged_outlives_its_manager_untouched(restart: Restart) -> None:
    model = Model()
    async with manager(model) as first:
        await first.run(Run(pod=pod("a"), restart=restart))
    begins = list(model.begins)
    async with manager(model) as second:
        await second.pods.look()
        await second.pods.known()
        managed = second.pods.named("a")
        assert (phase_of(managed.facts), given_milli(second)) == ("running", {"GPU-0": 300})
        assert model.begins == begins
        with pytest.raises(Objection, match="already"):
            await second.run(Run(pod=pod("a")))


async def test_what_a_person_stopped_stays_stopped_for_the_next_manager() -> None:
    model = Model()
    async with manager(model) as first:
        managed = await first.run(Run(pod=pod("a"), restart="always"))
        managed.stop(0)
        await managed.until(lambda: managed.is_at_rest)
    async with manager(model) as second:
        await second.pods.look()
        await second.pods.known()
        assert phase_of(second.pods.named("a").facts) == "stopped"
        assert model.running() == []
