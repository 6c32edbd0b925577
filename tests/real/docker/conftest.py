"""One machine with Docker and Podman for all tests of this folder, and an OCI runtime that records its calls."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rig import images
from rig.rig import CHECKOUT
from support.engines.docker import Docker, docker_programs, dockerd_on
from support.engines.engine import Engine
from support.engines.machines import engine_machines
from support.engines.podman import Podman, podman_on, podman_programs
from support.engines.recording import NAME, RecordingRuntime, recording_runtime

LOGS = CHECKOUT / ".cache/test/rig-logs-docker"


@pytest.fixture(scope="package")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> RecordingRuntime:
    return recording_runtime(tmp_path_factory.mktemp("runtime"), docker_programs()["runc"])


@pytest.fixture(scope="package")
def lasting_engines(runtime: RecordingRuntime) -> Iterator[tuple[Docker, Podman]]:
    visible = docker_programs().folders | podman_programs().folders
    settings = {"runtimes": {NAME: {"path": str(runtime.program)}}, "live-restore": True}
    with engine_machines(visible=visible, keep_logs=LOGS) as (machine,), dockerd_on(machine, settings) as docker:
        podman = podman_on(machine)
        for engine in (docker, podman):
            engine.load({"busybox": images.busybox()})
        yield docker, podman


@pytest.fixture
def docker(lasting_engines: tuple[Docker, Podman]) -> Iterator[Docker]:
    docker, _ = lasting_engines
    yield docker
    docker.end_all()


@pytest.fixture
def podman(lasting_engines: tuple[Docker, Podman]) -> Iterator[Podman]:
    _, podman = lasting_engines
    yield podman
    podman.end_all()


@pytest.fixture(params=["docker", "podman"])
def engine(request: pytest.FixtureRequest, docker: Docker, podman: Podman) -> Engine:
    return {"docker": docker, "podman": podman}[request.param]
