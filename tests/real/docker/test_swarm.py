"""Docker Swarm counts shares as a node's generic resource, with our runtime as everybody's: what a fleet rests on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from real.docker.conftest import DOCKERS
from rig import images
from rig.programs import Programs
from support.engines.engine import engine_programs
from support.engines.machines import engine_machines
from support.engines.recording import NAME, RecordingRuntime, recording_runtime
from support.engines.swarm import Swarm, swarm_of

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.extended("facts of Swarm, whose release is fixed; with shares it is at work in test_swarm_shares"),
]
WHY = "partage: no card has a share of 300 milli left"
SHARE = ("--generic-resource", "partage-milli=300")


@pytest.fixture(scope="module", params=DOCKERS)
def programs(request: pytest.FixtureRequest) -> Programs:
    return engine_programs(request.param)


@pytest.fixture(scope="module")
def runtimes(programs: Programs, tmp_path_factory: pytest.TempPathFactory) -> list[RecordingRuntime]:
    """Of each node."""
    return [recording_runtime(tmp_path_factory.mktemp("runtime"), programs["runc"]) for _ in range(2)]


@pytest.fixture(scope="module")
def lasting_swarm(programs: Programs, runtimes: list[RecordingRuntime]) -> Iterator[Swarm]:
    settings = [
        {
            "runtimes": {NAME: {"path": str(runtime.program)}},
            "default-runtime": NAME,
            "node-generic-resources": ["partage-milli=1000"],
        }
        for runtime in runtimes
    ]
    with (
        engine_machines(2, visible=programs.folders) as machines,
        swarm_of(zip(machines, settings, strict=True), programs) as swarm,
    ):
        for node in swarm.nodes:
            node.load({"busybox": images.busybox()})
        yield swarm


@pytest.fixture
def swarm(lasting_swarm: Swarm) -> Iterator[Swarm]:
    yield lasting_swarm
    lasting_swarm.end_all()


def test_no_more_tasks_run_on_a_node_than_its_resource_allows(swarm: Swarm) -> None:
    swarm.serve("train", *SHARE, "--replicas", "7", "busybox", "sleep", "100000")
    (waiting,) = swarm.wait_running("train", {"m1": 3, "m2": 3})
    assert "no suitable node (insufficient resources on 2 nodes)" in waiting


def test_the_bundle_has_the_resource_as_a_variable_which_names_no_runtime(
    swarm: Swarm, runtimes: list[RecordingRuntime]
) -> None:
    swarm.serve("train", *SHARE, "--mode", "global", "busybox", "sleep", "100000")
    swarm.wait_running("train", {"m1": 1, "m2": 1})
    for node, runtime in zip(swarm.nodes, runtimes, strict=True):
        (container,) = node.running()
        assert "DOCKER_RESOURCE_PARTAGE-MILLI=300" in runtime.bundle(container)["process"]["env"]


def test_what_a_nodes_runtime_refuses_is_tried_again_elsewhere(swarm: Swarm, runtimes: list[RecordingRuntime]) -> None:
    with runtimes[0].refusing(WHY):
        swarm.serve("train", *SHARE, "--replicas", "2", "busybox", "sleep", "100000")
        swarm.wait_running("train", {"m2": 2})
    assert any(WHY in error for error in swarm.errors("train"))
