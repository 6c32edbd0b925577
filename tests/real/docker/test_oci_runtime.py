"""How Docker and Podman use an OCI runtime given by path, which `partage-oci` depends on."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Final

import pytest

from real.docker.conftest import DOCKERS
from rig.client.wait import until
from support.engines.docker import Docker
from support.engines.engine import Engine
from support.engines.podman import PODMAN, Podman
from support.engines.recording import NAME, RecordingRuntime

of_docker = pytest.mark.parametrize("site", DOCKERS, indirect=True)
of_podman = pytest.mark.parametrize("site", [PODMAN], indirect=True)
pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.extended("facts of engines whose releases are fixed; with partage-oci they are at work in test_shares"),
]
WAITS: Final = ("busybox", "sleep", "100000")
WHY: Final = "partage: no card has a share of 900 milli left; the most that is free on one card is 300 milli"
DOCKERS_CALLS: Final = ["create", "start", "delete", "delete --force"]
PODMANS_CALLS: Final = ["create", "start", "delete --force"]
"""For a container that exits by itself."""


def flag(engine: Engine, runtime: RecordingRuntime) -> tuple[str, str]:
    """Docker takes the name of a runtime that its daemon knows, Podman a path."""
    return "--runtime", NAME if isinstance(engine, Docker) else str(runtime.program)


def run(engine: Engine, runtime: RecordingRuntime, *words: str) -> str:
    return engine.run("-d", *flag(engine, runtime), *words)


def wait_calls(runtime: RecordingRuntime, container: str, verbs: list[str]) -> None:
    until(f"the calls are {verbs}", lambda: None if (seen := runtime.verbs(container)) == verbs else f"they are {seen}")


def wait_ended(engine: Engine, container: str) -> None:
    until("it has ended", lambda: None if engine.inspected(container)["State"]["Status"] == "exited" else "it runs")


def folders_named_by_id(runtime: RecordingRuntime, container: str) -> list[str]:
    """For each mount, the folder at or above its source that is named by the container's id, if any."""
    sources = [PurePosixPath(mount["source"]) for mount in runtime.bundle(container)["mounts"]]
    return [str(above) for source in sources for above in source.parents if above.name == container]


def test_a_container_without_a_runtime_of_its_own_is_made_by_runc(engine: Engine, runtime: RecordingRuntime) -> None:
    container = engine.run("-d", *WAITS)
    assert engine.said("exec", container, "echo", "hi") == "hi"
    assert runtime.calls(container) == []


@of_podman
def test_podman_makes_a_container_by_crun(podman: Podman) -> None:
    done = podman.by_crun("--rm", "busybox", "cat", "/proc/self/cgroup")
    assert f"{podman.cgroup}/libpod-" in done.stdout, done.stderr


@of_docker
def test_docker_calls_the_runtime_to_create_and_to_start_and_twice_to_delete(
    docker: Docker, runtime: RecordingRuntime
) -> None:
    container = run(docker, runtime, "busybox", "true")
    wait_calls(runtime, container, DOCKERS_CALLS)
    create, start, *_ = runtime.calls(container)
    *flags, verb, bundle, bundle_at, pid_file, pid_file_at, last = create
    assert (verb, bundle, pid_file, last) == ("create", "--bundle", "--pid-file", container)
    assert pid_file_at == f"{bundle_at}/init.pid"
    assert flags[::2] == ["--root", "--log", "--log-format"]
    root, log, log_format = flags[1::2]
    assert (PurePosixPath(root).parts[-2:], log, log_format) == (
        ("runtime-runc", "moby"),
        f"{bundle_at}/log.json",
        "json",
    )
    assert start == [*flags, "start", container], "flags for all verbs come before the verb"


@of_podman
def test_podman_calls_the_runtime_to_create_and_to_start_and_to_delete(
    podman: Podman, runtime: RecordingRuntime
) -> None:
    container = run(podman, runtime, "busybox", "true")
    wait_calls(runtime, container, PODMANS_CALLS)
    verb, bundle, _, pid_file, _, last = runtime.calls(container)[0]
    assert (verb, bundle, pid_file, last) == ("create", "--bundle", "--pid-file", container), "it names no root, no log"


def test_the_sentence_of_a_runtime_that_refuses_reaches_the_user(engine: Engine, runtime: RecordingRuntime) -> None:
    with runtime.refusing(WHY):
        done = engine.done("run", "--name", "refused", *flag(engine, runtime), "busybox", "true")
    assert done.returncode == (125 if isinstance(engine, Docker) else 126)
    assert WHY in done.stderr
    container = engine.inspected("refused")["Id"]
    wait_calls(runtime, container, ["create (refused)", "delete --force"])


def test_the_bundle_has_variables_of_user_and_image_and_podmans_annotations(
    engine: Engine, runtime: RecordingRuntime
) -> None:
    said = ("-e", "PARTAGE_SHARE=300", "--label", "partage.dev/share=500")
    annotated = ("--annotation", "partage.dev/share=300") if isinstance(engine, Podman) else ()
    container = run(engine, runtime, *said, *annotated, *WAITS)
    bundle = runtime.bundle(container)
    assert "PARTAGE_SHARE=300" in bundle["process"]["env"]
    assert any(variable.startswith("PATH=") for variable in bundle["process"]["env"])
    assert bundle.get("annotations", {}).get("partage.dev/share") == ("300" if annotated else None), "no label is there"


def test_the_cgroup_in_the_bundle_ends_with_the_id(engine: Engine, runtime: RecordingRuntime) -> None:
    container = run(engine, runtime, *WAITS)
    path = runtime.bundle(container)["linux"]["cgroupsPath"]
    assert re.fullmatch(rf"/\S+/(libpod-)?{container}", path)
    assert path in engine.said("exec", container, "cat", "/proc/self/cgroup")


def test_folders_named_by_the_id_stay_until_the_container_is_removed(engine: Engine, runtime: RecordingRuntime) -> None:
    container = run(engine, runtime, "busybox", "true")
    wait_ended(engine, container)
    folders = folders_named_by_id(runtime, container)
    assert folders
    assert [each for each in folders if not engine.machine.path(each).is_dir()] == []
    engine.end(container)
    assert [each for each in folders if engine.machine.path(each).exists()] == []


@of_docker
def test_a_container_that_docker_restarts_is_deleted_and_created_again_with_its_id(
    docker: Docker, runtime: RecordingRuntime
) -> None:
    container = run(docker, runtime, "--restart", "on-failure:1", "busybox", "false")
    wait_calls(runtime, container, [*DOCKERS_CALLS, *DOCKERS_CALLS])


def test_a_container_that_is_started_again_has_its_id(engine: Engine, runtime: RecordingRuntime) -> None:
    container = run(engine, runtime, "busybox", "true")
    calls = DOCKERS_CALLS if isinstance(engine, Docker) else PODMANS_CALLS
    wait_calls(runtime, container, calls)
    engine.said("start", container)
    wait_calls(runtime, container, [*calls, *calls])


@of_docker
def test_docker_does_not_try_a_restart_again_that_was_refused(docker: Docker, runtime: RecordingRuntime) -> None:
    container = run(docker, runtime, "--restart", "always", *WAITS)
    with runtime.refusing(WHY):
        docker.machine.run("kill", "-KILL", str(docker.inspected(container)["State"]["Pid"]))
        until("it is refused", lambda: None if WHY in docker.inspected(container)["State"]["Error"] else "no error")
    state = docker.inspected(container)["State"]
    assert (state["Status"], state["Restarting"]) == ("exited", False)
    assert runtime.verbs(container).count("create (refused)") == 1


@of_docker
def test_docker_reads_runtimes_again_at_a_sighup(docker: Docker, runtime: RecordingRuntime) -> None:
    program = {"path": str(runtime.program)}
    docker.configure({"runtimes": {NAME: program, "later": program}, "default-runtime": "later", "live-restore": True})
    docker.reload()
    try:
        container = docker.run("-d", *WAITS)
        assert runtime.verbs(container) == ["create", "start"], "the default runtime is for all that name none"
    finally:
        docker.configure({"runtimes": {NAME: program}, "default-runtime": "runc", "live-restore": True})
        docker.reload()


@of_docker
def test_containers_live_on_while_dockerd_is_gone_and_are_known_to_the_next(
    docker: Docker, runtime: RecordingRuntime
) -> None:
    container = run(docker, runtime, *WAITS)
    docker.daemon.restart()
    assert docker.running() == {container}
    assert docker.said("exec", container, "echo", "hi") == "hi"
    assert runtime.verbs(container).count("create") == 1
