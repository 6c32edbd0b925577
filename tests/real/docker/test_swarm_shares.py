"""Swarm and shares: Swarm counts a machine's shares, and each machine's agent those of its cards."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import pytest

from real.docker.conftest import LOGS
from rig.client.wait import until
from rig.machine.components import away
from support.engine_stage import PROGRAM, RUNTIME, VISIBLE, SharesStage, install_program, shares_on
from support.engines.docker import DEBIANS
from support.engines.engine import engine_programs
from support.engines.machines import engine_machines
from support.engines.swarm import Swarm, swarm_of
from support.machine_image import workloads

pytestmark = pytest.mark.timeout(400)
WAITS: Final = ("tools", "sleep", "100000")
ON_FIRST: Final = ("--constraint", "node.hostname==m1")
Stages = tuple[SharesStage, ...]


@pytest.fixture(scope="module")
def lasting() -> Iterator[tuple[Swarm, Stages]]:
    programs = engine_programs(DEBIANS)
    settings = {
        "runtimes": {RUNTIME: {"path": PROGRAM}},
        "default-runtime": RUNTIME,
        "node-generic-resources": ["partage-milli=2000", "partage-memory-mib=40000"],
    }
    with engine_machines(2, visible={*programs.folders, *VISIBLE}, keep_logs=LOGS) as machines, ExitStack() as ends:
        for machine in machines:
            install_program(machine, programs["runc"], guard="yes")
        flags = ("--look-every-s", "0.5", "--restart-hold-s", "1")
        stages = tuple(ends.enter_context(shares_on(machine, "l4", "l4", flags=flags)) for machine in machines)
        swarm = ends.enter_context(swarm_of([(machine, settings) for machine in machines]))
        for node in swarm.nodes:
            node.load({"tools": workloads()})
        yield swarm, stages


@pytest.fixture
def stages(lasting: tuple[Swarm, Stages]) -> Iterator[Stages]:
    swarm, stages = lasting
    yield stages
    swarm.end_all()
    for stage in stages:
        stage.wait_nothing_held()


@pytest.fixture
def swarm(lasting: tuple[Swarm, Stages], stages: Stages) -> Swarm:
    return lasting[0]


def reserving(milli: int, mib: int = 1000) -> tuple[str, ...]:
    return ("--generic-resource", f"partage-milli={milli}", "--generic-resource", f"partage-memory-mib={mib}")


def test_services_share_the_cards_of_all_machines_and_fill_them(swarm: Swarm, stages: Stages) -> None:
    swarm.serve("train", *reserving(500, 4000), "--replicas", "9", *WAITS)
    (waiting,) = swarm.wait_running("train", {"m1": 4, "m2": 4})
    assert "no suitable node (insufficient resources on 2 nodes)" in waiting
    for stage in stages:
        assert sorted(stage.held_milli().values()) == [1000, 1000]
        assert {grant["memory"] for record in stage.held() for grant in record["grants"]} == {4000 << 20}


def test_tasks_of_a_machine_that_died_have_their_shares_on_another(swarm: Swarm, stages: Stages) -> None:
    swarm.serve("train", *reserving(600), "--replicas", "2", *WAITS)
    swarm.wait_running("train", {"m1": 1, "m2": 1})
    with away(stages[1].broker, stages[1].agent, swarm.nodes[1].daemon):
        swarm.wait_running("train", {"m1": 2})
        assert sorted(stages[0].held_milli().values()) == [600, 600]
    stages[1].wait_nothing_held()


def test_a_task_that_fits_on_a_machine_but_on_none_of_its_cards_is_tried_until_one_has_room(
    swarm: Swarm, stages: Stages
) -> None:
    swarm.serve("small", *reserving(600), *ON_FIRST, "--replicas", "2", *WAITS)
    swarm.wait_running("small", {"m1": 2})
    swarm.serve("large", *reserving(800), *ON_FIRST, *WAITS)
    why = "partage: no card has a share of 800 milli left; the most that is free on one card is 400 milli"

    def refusals() -> int:
        return sum(why in error for error in swarm.errors("large"))

    until("it is refused twice", lambda: None if refusals() >= 2 else str(swarm.errors("large")))
    swarm.manager.said("service", "rm", "small")
    swarm.wait_running("large", {"m1": 1})
    assert 800 in stages[0].held_milli().values()
