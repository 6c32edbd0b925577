"""`partage up` and `partage docker install` beside a running Docker, and their removal, as an operator types them."""

from __future__ import annotations

import json

import pytest

from real.docker.conftest import LOGS
from rig import images
from support.docker_machine import PLACES, DockerMachine, docker_machine
from support.engines.docker import CONFIG, DEBIANS
from support.engines.engine import engine_programs

pytestmark = pytest.mark.timeout(300)
ASKED = "docker run --rm --runtime partage -e PARTAGE_SHARE=300 busybox echo yes"


def typed(machine: DockerMachine, command: str) -> str:
    done = machine.types(command)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


def state(machine: DockerMachine) -> list[bool]:
    """Whether it is registered with Docker, in force, and the default runtime."""
    said = typed(machine, f"partage docker status -o json --daemon-json {CONFIG}")
    (docker,) = (each for each in json.loads(said) if each["engine"] == "docker")
    return [docker[key] for key in ("registered", "in_force", "default")]


def test_a_docker_that_runs_has_the_runtime_and_forgets_it_and_its_settings_are_back_to_the_byte() -> None:
    engine_programs(DEBIANS)  # without them the test is skipped
    with docker_machine(LOGS) as machine:
        docker, file = machine.docker, machine.docker.machine.path(CONFIG)
        docker.load({"busybox": images.busybox()})
        before = json.dumps(json.loads(file.read_bytes()), indent="\t").encode()  # formatted as only its owner does
        file.write_bytes(before)
        bystander, daemon = docker.run("-d", "busybox", "sleep", "100000"), docker.daemon.pid
        machine.stage.start()
        assert machine.types(ASKED).returncode != 0, "Docker does not know it yet"

        typed(machine, f"partage docker install --default {PLACES}")
        assert state(machine) == [True, True, True]
        assert typed(machine, ASKED) == "yes\n"
        typed(machine, f"partage docker install {PLACES}")
        assert state(machine) == [True, True, False]
        container = docker.run("-d", "--runtime", "partage", "-e", "PARTAGE_SHARE=300", "busybox", "sleep", "100000")

        said = typed(machine, f"partage docker uninstall {PLACES}")
        assert "stays: containers of docker run by it: 1" in said
        assert file.read_bytes() == before
        assert state(machine) == [False, False, False]
        assert machine.types(ASKED).returncode != 0
        assert docker.run("--rm", "busybox", "echo", "yes") == "yes"
        docker.end(container)
        typed(machine, f"partage docker uninstall {PLACES}")
        typed(machine, "partage down --all --purge")
        left = typed(machine, "ls -d /etc/partage /run/partage /usr/local/lib/partage/oci 2>/dev/null || true")
        assert left == ""
        assert (docker.daemon.pid, docker.running()) == (daemon, {bystander})
