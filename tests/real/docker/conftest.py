"""Machines with one engine each for all tests of this folder, and an OCI runtime that records the engine's calls."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from rig import images
from rig.rig import CHECKOUT
from support import extent
from support.engines.docker import DEBIANS, NEWER, Docker, dockerd_on
from support.engines.engine import Engine, engine_programs
from support.engines.machines import engine_machines
from support.engines.podman import PODMAN, Podman, podman_on
from support.engines.recording import NAME, RecordingRuntime, recording_runtime

LOGS = CHECKOUT / ".cache/test/rig-logs-docker"
DOCKERS = (DEBIANS, NEWER) if extent.is_all() else (DEBIANS,)


@dataclass(frozen=True)
class Site:
    engine: Engine
    runtime: RecordingRuntime


@pytest.fixture(scope="package", params=(*DOCKERS, PODMAN))
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    making = with_podman if request.param == PODMAN else with_docker
    with making(request.param, tmp_path_factory.mktemp("runtime")) as site:
        site.engine.load({"busybox": images.busybox()})
        yield site


@contextmanager
def with_docker(release: str, scratch: Path) -> Generator[Site]:
    programs = engine_programs(release)
    runtime = recording_runtime(scratch, programs["runc"])
    settings = {"runtimes": {NAME: {"path": str(runtime.program)}}, "live-restore": True}
    with (
        engine_machines(visible=programs.folders, keep_logs=LOGS) as (machine,),
        dockerd_on(machine, settings, programs) as docker,
    ):
        yield Site(docker, runtime)


@contextmanager
def with_podman(_: str, scratch: Path) -> Generator[Site]:
    programs = engine_programs(PODMAN)
    runtime = recording_runtime(scratch, programs["runc"])
    with engine_machines(visible=programs.folders, keep_logs=LOGS) as (machine,):
        yield Site(podman_on(machine), runtime)


@pytest.fixture
def runtime(site: Site) -> RecordingRuntime:
    return site.runtime


@pytest.fixture
def engine(site: Site) -> Iterator[Engine]:
    yield site.engine
    site.engine.end_all()


@pytest.fixture
def docker(engine: Engine) -> Docker:
    assert isinstance(engine, Docker)
    return engine


@pytest.fixture
def podman(engine: Engine) -> Podman:
    assert isinstance(engine, Podman)
    return engine
