"""`up` beside Docker and Podman: containers with shares are listed, waited for, and outlive all but `down --all`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rig.client.wait import until
from rig.rig import CHECKOUT
from support.docker_machine import PLACES
from support.engines.docker import DEBIANS, Docker, dockerd_on
from support.engines.engine import engine_programs
from support.engines.machines import engine_machines
from support.engines.podman import PODMAN, Podman, podman_on
from support.machine_image import workloads
from support.machine_stage import PARTAGE, MachineStage, ready_to_go_up
from support.simgpu import built as built_simgpu

pytestmark = pytest.mark.timeout(300)

LOGS = CHECKOUT / ".cache/test/rig-logs-up-docker"
SHARE = ("-e", "PARTAGE_SHARE=300", "-e", "PARTAGE_MEMORY=4g")
LARGE = ("allocate", "--kind", "large", "--count", "1")


@dataclass(frozen=True)
class Stage:
    docker: Docker
    podman: Podman
    up: MachineStage

    def done(self, *words: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.docker.env['PATH']}:{self.podman.env['PATH']}"
        return self.docker.program("env", f"PATH={path}", *PARTAGE, *words)

    def partage(self, *words: str) -> str:
        done = self.done(*words)
        assert done.returncode == 0, f"partage {' '.join(words)}: {done.stderr}"
        return done.stdout

    def sharing(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(self.partage("ps", "-o", "json"))["containers"]
        return found

    def runs(self, name: str, share: int) -> str:
        """Start a container with that share and 4 GiB; return its id."""
        return self.docker.run("-d", "--name", name, *asked(f"{share}", "4g"), "tools", "sleep", "100000")


def asked(share: str, memory: str) -> tuple[str, ...]:
    return ("--runtime", "partage", "-e", f"PARTAGE_SHARE={share}", "-e", f"PARTAGE_MEMORY={memory}")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    programs = engine_programs(DEBIANS)
    visible = (*programs.folders, *engine_programs(PODMAN).folders, built_simgpu(), Path(sys.prefix))
    with (
        engine_machines(visible=visible, keep_logs=LOGS) as (machine,),
        dockerd_on(machine) as docker,
        ready_to_go_up(machine, ("--simulated", "h100")) as up,
    ):
        podman = podman_on(machine)
        for engine in (docker, podman):
            engine.load({"tools": workloads()})
        up.start()
        made = Stage(docker, podman, up)
        engines = ("--engine", "docker", "--engine", "podman")
        made.partage("docker", "install", *engines, *PLACES.split(), "--runtime-below", str(programs["runc"]))
        yield made


def test_a_container_is_listed_with_its_name_and_share_and_held_to_it(stage: Stage) -> None:
    id_ = stage.runs("train", 600)
    (found,) = stage.sharing()
    assert (found["id"], found["name"], found["image"]) == (id_, "train", "tools")
    assert (found["share_milli"], found["memory_bytes"], found["status"]) == (600, 4 << 30, "running")
    assert stage.docker.done("exec", "train", *LARGE, "--mib", "1024").returncode == 0
    assert stage.docker.done("exec", "train", *LARGE, "--mib", "5000").returncode != 0
    assert "containers/train" in stage.partage("top", "--once")
    stage.partage("limits", id_[:12], "--memory", "2Gi")
    assert "2 GiB" in stage.partage("ps")
    stage.docker.end("train")
    until("its share is free", lambda: str(left) if (left := stage.sharing()) else None)


def test_a_container_of_podman_is_listed_beside_dockers(stage: Stage) -> None:
    docker = stage.runs("one", 300)
    id_ = stage.podman.said("--runtime", "partage", "run", "-d", "--name", "two", *SHARE, "tools", "sleep", "100000")
    assert {each["id"]: each["name"] for each in stage.sharing()} == {docker: "one", id_: "two"}
    stage.podman.end("two")
    stage.docker.end("one")
    until("all is free", lambda: str(left) if (left := stage.sharing()) else None)


def test_who_waits_runs_once_there_is_room(stage: Stage) -> None:
    stage.runs("first", 600)
    words = ("docker", "run", "--rm", "--runtime", "partage", "-e", "PARTAGE_SHARE", "-e", "PARTAGE_MEMORY", "tools")
    script = f"{' '.join(PARTAGE)} wait-for --share 600 --memory 4Gi -- {' '.join(words)} echo had it >/said 2>&1 &"
    stage.docker.program("sh", "-c", script)
    said = stage.docker.machine.path("/said")
    until("it says why it waits", lambda: None if "no card has a share of 600" in said.read_text() else "it does not")
    refused = stage.docker.done("run", "--rm", *asked("600", "4g"), "tools", "true")
    assert "partage: no card has a share of 600 milli left" in refused.stderr
    stage.docker.end("first")
    until("it had its turn", lambda: None if "had it" in said.read_text() else said.read_text())


def test_containers_outlive_down_and_a_killed_up(stage: Stage) -> None:
    stage.runs("kept", 300)
    done = stage.done("down")
    assert (done.returncode, "containers go on" in done.stderr) == (0, True), done.stderr
    assert stage.docker.done("exec", "kept", "true").returncode == 0
    stage.up.start()
    assert [each["name"] for each in stage.sharing()] == ["kept"]
    stage.up.up.kill()
    stage.up.start()
    assert stage.docker.done("exec", "kept", *LARGE, "--mib", "5000").returncode != 0
    assert stage.docker.done("exec", "kept", *LARGE, "--mib", "1024").returncode == 0
    assert [each["status"] for each in stage.sharing()] == ["running"]
    stage.docker.end("kept")


def test_nothing_is_purged_under_a_container_but_with_all(stage: Stage) -> None:
    id_ = stage.runs("holder", 300)
    others = stage.docker.run("-d", "tools", "sleep", "100000")
    done = stage.done("down", "--purge")
    assert (done.returncode, f"containers have shares that --purge would take away: {id_[:12]}" in done.stderr) == (
        1,
        True,
    ), done.stderr
    assert id_ in stage.docker.running()
    done = stage.done("down", "--all", "--purge")
    assert (done.returncode, f"container {id_[:12]} is killed" in done.stderr) == (0, True), done.stderr
    until("it has ended", lambda: None if stage.docker.running() == {others} else "it runs")
    assert not stage.docker.machine.path("/run/partage").exists()
    assert "`partage docker uninstall` takes that back" in done.stderr
    stage.docker.end_all()
    stage.up.start()
    assert stage.sharing() == []
