"""Pods are run, restarted, stopped and removed; several at once never have more than there is."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from msgspec.structs import replace

from partage_cli.machine.manager.errors import Objection
from partage_cli.machine.manager.life import phase_of
from partage_cli.machine.manager.managed import ManagedPod
from partage_cli.machine.pods.pod import ContainerPort, Pod, PullPolicy, PullWhen
from partage_cli.machine.wire.messages import Run
from unit.machine.manager.runtime_model import Model
from unit.machine.manager.stage import container, given_milli, manager, pod, settled


async def test_a_pod_runs_in_a_sandbox_with_a_signed_allocation_and_ends() -> None:
    model = Model()
    async with manager(model) as found:
        managed = await found.run(Run(pod=pod(share=300)))
        assert phase_of(managed.facts) == "running"
        assert given_milli(found) == {"GPU-0": 300}
        (sandbox,) = model.sandboxes.values()
        assert {"alloc.partage.dev/allocation", "alloc.partage.dev/signature", "machine.partage.dev/pod"} == set(
            sandbox.spec.annotations
        )
        model.exit(model.running()[0], 7)
        await managed.until(lambda: managed.is_at_rest)
        assert (phase_of(managed.facts), managed.exit_code) == ("exited", 7)
        assert given_milli(found) == {"GPU-0": 0}
        assert not sandbox.ready


async def test_what_crishim_refuses_comes_back_word_for_word_and_nothing_is_left() -> None:
    model = Model()
    model.refuses = lambda *_: "partage: the broker does not answer"
    async with manager(model) as found:
        with pytest.raises(Objection) as refused:
            await found.run(Run(pod=pod()))
        assert (refused.value.code, refused.value.why) == ("refused", "partage: the broker does not answer")
        await settled(lambda: not found.pods.all)
        assert (model.sandboxes, model.containers, given_milli(found)) == ({}, {}, {"GPU-0": 0})


async def test_a_program_that_is_not_there_comes_back_in_the_runtimes_words() -> None:
    model = Model()
    model.refuses_start = lambda _: 'exec: "nosuch": executable file not found in $PATH'
    async with manager(model) as found:
        with pytest.raises(Objection, match="nosuch") as refused:
            await found.run(Run(pod=pod(), restart="always"))
        assert refused.value.code == "runtime"
        await settled(lambda: not found.pods.all)
        assert model.sandboxes == {}


async def test_thirty_at_once_never_have_more_than_there_is_and_the_others_are_told_what_would_fit() -> None:
    model = Model()
    async with manager(model, cards=2) as found:
        runs = [found.run(Run(pod=pod(f"p{number}", share=300))) for number in range(30)]
        results = await asyncio.gather(*runs, return_exceptions=True)
        refused = [each for each in results if isinstance(each, Objection)]
        assert (len(refused), given_milli(found)) == (24, {"GPU-0": 900, "GPU-1": 900})
        why = "no card has a share of 300 milli left; the most that is free on one card is 100 milli and 8 GiB (card 0)"
        assert {(each.code, str(each).partition(": ")[2]) for each in refused} == {("no-room", why)}


async def test_who_waits_gets_a_place_in_turn_and_who_gave_up_takes_none() -> None:
    model = Model()
    async with manager(model) as found:
        first = await found.run(Run(pod=pod("first", share=800)))
        second = asyncio.create_task(found.run(Run(pod=pod("second", share=900), wait=True)))
        gone = asyncio.create_task(found.run(Run(pod=pod("gone", share=100), wait=True)))
        third = asyncio.create_task(found.run(Run(pod=pod("third", share=100), wait=True)))
        await settled(lambda: found.admission.waiting == 3)
        assert [each.text.partition(" ")[0] for each in found.queued] == ["second", "gone", "third"]
        gone.cancel()
        await settled(lambda: found.admission.waiting == 2)
        assert given_milli(found) == {"GPU-0": 800}
        model.exit(model.running()[0], 0)
        await asyncio.gather(second, third)
        assert given_milli(found) == {"GPU-0": 1000}
        await first.until(lambda: first.is_at_rest)
        assert (await found.run(Run(pod=pod("gone", share=0)))).name == "gone"


async def test_what_can_never_fit_is_told_so_and_does_not_wait() -> None:
    async with manager(Model()) as found:
        with pytest.raises(Objection, match="too few cards") as refused:
            await found.run(Run(pod=pod("a", container(gpu_milli=2000, gpus=2)), wait=True))
        assert refused.value.code == "no-room"


async def test_always_is_started_again_in_its_sandbox_until_a_person_stops_it() -> None:
    model = Model()
    async with manager(model) as found:
        managed = await found.run(Run(pod=pod(), restart="always"))
        for attempt in range(3):
            model.exit(model.running()[0], 0, ran_s=60)
            await settled(partial(_runs_attempt, model, attempt + 1))
        assert len(model.sandboxes) == 1
        managed.stop(None)
        await managed.until(lambda: managed.is_at_rest)
        assert (phase_of(managed.facts), model.running(), given_milli(found)) == ("stopped", [], {"GPU-0": 0})


async def test_one_that_fails_gives_its_name_and_place_back_when_it_is_to_be_removed() -> None:
    model = Model()
    async with manager(model) as found:
        managed = await found.run(Run(pod=pod("once"), remove=True))
        model.exit(model.running()[0], 3)
        await managed.until(lambda: managed.is_gone)
        assert (managed.exit_code, model.sandboxes) == (3, {})
        await found.run(Run(pod=pod("once")))


async def test_init_containers_run_one_after_the_other_before_the_others() -> None:
    model = Model()
    async with manager(model) as found:
        made = pod("a", container("one"), container("two"), inits=(container("i1"), container("i2")))
        running = asyncio.create_task(found.run(Run(pod=made)))
        for name in ("i1", "i2"):
            await settled(partial(_runs, model, name))
            model.exit(model.running()[0], 0)
        await running
        assert {each.name for each in model.running()} == {"one", "two"}


async def test_a_taken_name_is_refused_also_while_its_pod_is_still_starting() -> None:
    model = Model()
    async with manager(model) as found:
        both = await asyncio.gather(found.run(Run(pod=pod("a"))), found.run(Run(pod=pod("a"))), return_exceptions=True)
        assert [type(each).__name__ for each in both] == ["ManagedPod", "Objection"]
        assert len(model.sandboxes) == 1


async def test_a_port_of_the_machine_is_one_pods_until_that_has_ended() -> None:
    def wanting(name: str, *said: ContainerPort) -> Pod:
        return pod(name, replace(container(), ports=said))

    web = ContainerPort(container_port=80, host_port=8080)
    model = Model()
    async with manager(model) as found:
        first, second = await asyncio.gather(
            found.run(Run(pod=wanting("first", web))),
            found.run(Run(pod=wanting("second", replace(web, host_ip="127.0.0.1")))),
            return_exceptions=True,
        )
        assert isinstance(first, ManagedPod)
        why = "second: port 8080/tcp of this machine is pod first's; take another, or stop first"
        assert isinstance(second, Objection)
        assert (second.code, second.why) == ("refused", why)
        await found.run(Run(pod=wanting("udp", replace(web, protocol="UDP"))))
        other = replace(web, host_port=8081)
        with pytest.raises(Objection, match="asks twice for port 8081/tcp"):
            await found.run(Run(pod=wanting("twice", other, replace(other, container_port=81))))
        first.stop(0)
        await first.until(lambda: first.is_at_rest)
        await found.run(Run(pod=wanting("second", web)))
        with pytest.raises(Objection, match="is pod second's"):
            await found.start(first)


@pytest.mark.parametrize(
    ("asked", "said", "pulled"),
    [(None, "IfNotPresent", 0), (None, "Always", 1), ("missing", "Always", 0), ("always", "Never", 1)],
)
async def test_what_is_asked_of_pulling_counts_before_what_the_pod_says(
    asked: PullWhen | None, said: PullPolicy, pulled: int
) -> None:
    async with manager(Model()) as found:
        await found.run(Run(pod=pod("a", replace(container(), image_pull_policy=said)), pull=asked))
        assert len(found.shelf.pulled) == pulled


async def test_an_image_that_is_not_there_and_not_to_be_pulled_is_refused() -> None:
    model = Model()
    async with manager(model) as found:
        found.shelf.lacks.add("busybox")
        with pytest.raises(Objection, match="busybox is not in the store") as refused:
            await found.run(Run(pod=pod(), pull="never"))
        assert (refused.value.code, found.shelf.pulled, model.sandboxes) == ("image", [], {})


async def test_a_stopped_pod_is_started_with_its_name_and_a_new_sandbox() -> None:
    model = Model()
    async with manager(model) as found:
        managed = await found.run(Run(pod=pod(), restart="on-failure", most_restarts=1))
        managed.stop(0)
        await managed.until(lambda: managed.is_at_rest)
        await found.start(managed)
        (sandbox,) = model.sandboxes.values()
        assert (sandbox.spec.attempt, sandbox.ready) == (1, True)
        assert '"gen":2' in sandbox.spec.annotations["alloc.partage.dev/allocation"]
        assert [each.attempt for each in model.running()] == [1]
        model.exit(model.running()[0], 1)
        await settled(partial(_runs_attempt, model, 2))


@pytest.mark.slow
async def test_a_runtime_that_is_away_for_a_while_loses_nothing() -> None:
    model = Model()
    async with manager(model) as found:
        managed = await found.run(Run(pod=pod(), restart="always"))
        model.is_away = True
        managed.doubt()
        model.exit(model.running()[0], 0)
        await settled(lambda: found.line.calls[-1] == "after sandboxes")
        model.is_away = False
        await settled(partial(_runs_attempt, model, 1))


def _runs(model: Model, name: str) -> bool:
    return [each.name for each in model.running()] == [name]


def _runs_attempt(model: Model, attempt: int) -> bool:
    return [each.attempt for each in model.running()] == [attempt]
