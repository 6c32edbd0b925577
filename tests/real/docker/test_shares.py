"""Shares for containers of Docker and Podman: enforced, counted once, and freed however a container ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from partage_isolation.store.folders import PARENT
from real.docker.conftest import LOGS
from rig.client.wait import until
from rig.machine.components import away
from support.engine_stage import PROGRAM, RUNTIME, VISIBLE, SharesStage, install_program, shares_on
from support.engines.docker import DEBIANS, Docker, dockerd_on
from support.engines.engine import Engine, engine_programs
from support.engines.machines import engine_machines
from support.engines.podman import PODMAN, Podman, podman_on
from support.isolation_stage import SERVING, image, told_by
from support.machine_image import workloads
from support.machine_stage import PARTAGE

pytestmark = pytest.mark.timeout(300)
CROWD: Final = 110
WAITS: Final = ("tools", "sleep", "100000")
LARGE: Final = ("allocate", "--kind", "large", "--count", "1")
GUARDED: Final = "guarded"
GUARDED_PROGRAM: Final = "/opt/guarded/partage-oci"
FLAGS: Final = ("--look-every-s", "0.5", "--restart-hold-s", "600")
_WITHIN_S: Final = 30.0


@pytest.fixture(scope="module")
def lasting() -> Iterator[tuple[SharesStage, Docker, Podman]]:
    programs = engine_programs(DEBIANS)
    visible = {*programs.folders, *engine_programs(PODMAN).folders, *VISIBLE}
    settings = {
        "runtimes": {RUNTIME: {"path": PROGRAM}, GUARDED: {"path": GUARDED_PROGRAM}},
        "default-runtime": GUARDED,
        "live-restore": True,
    }
    tools = workloads()
    images = {
        "tools": tools,
        "cuda": tools.with_env(NVIDIA_VISIBLE_DEVICES="all"),
        "view": image(),
        "asking": tools.with_env(PARTAGE_SHARE="300"),
    }
    with engine_machines(visible=visible, keep_logs=LOGS) as (machine,):
        install_program(machine, programs["runc"])
        install_program(machine, programs["runc"], at=GUARDED_PROGRAM, guard="yes")
        with shares_on(machine, "h100", flags=FLAGS) as stage, dockerd_on(machine, settings) as docker:
            podman = podman_on(machine, {RUNTIME: PROGRAM})
            for engine in (docker, podman):
                engine.load(images)
            yield stage, docker, podman


@pytest.fixture
def stage(lasting: tuple[SharesStage, Docker, Podman]) -> Iterator[SharesStage]:
    stage, *engines = lasting
    yield stage
    for engine in engines:
        engine.end_all()
    stage.wait_nothing_held()


@pytest.fixture(params=["docker", "podman"])
def engine(request: pytest.FixtureRequest, stage: SharesStage, lasting: tuple[SharesStage, Docker, Podman]) -> Engine:
    _, docker, podman = lasting
    return {"docker": docker, "podman": podman}[request.param]


@pytest.fixture
def podman(stage: SharesStage, lasting: tuple[SharesStage, Docker, Podman]) -> Podman:
    return lasting[2]


@pytest.fixture
def docker(stage: SharesStage, lasting: tuple[SharesStage, Docker, Podman]) -> Docker:
    return lasting[1]


def run(engine: Engine, *words: str) -> str:
    return engine.run("--runtime", RUNTIME, *words)


def refused(engine: Engine, *words: str) -> str:
    """The error that the user sees."""
    done = engine.done("run", "--rm", "--runtime", RUNTIME, *words)
    assert done.returncode != 0
    return done.stderr


def asked(*words: str) -> tuple[str, ...]:
    return tuple(flag for word in words for flag in ("-e", word))


def test_a_container_has_the_share_that_it_says_and_no_more(engine: Engine, stage: SharesStage) -> None:
    container = run(engine, "-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), *WAITS)
    (known,) = told_by(stage.machine).containers
    assert (known.pod.uid, known.engine_containers) == (container, (container,))
    within, beyond = (engine.done("exec", container, *LARGE, "--mib", mib) for mib in ("1024", "4096"))
    assert within.returncode == 0, within.stderr
    assert beyond.returncode != 0
    assert "memory" in beyond.stdout.lower()
    assert run(engine, "--rm", "tools", "echo", "yes") == "yes", "others are none of ours"


def test_a_container_is_shown_its_slice_as_the_whole_card(engine: Engine) -> None:
    words = asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g")
    shown = run(engine, "--rm", *words, "view", SERVING[0], "take 512", "view").splitlines()[-1]
    view = {name: int(value) >> 20 for name, value in (word.split("=") for word in shown.split())}
    assert (view["total"], view["nvml_total"]) == (4096, 4096)
    assert view["nvml_used"] == 4096 - view["nvml_free"] >= 512


def test_annotations_ask_as_variables_do(podman: Podman, stage: SharesStage) -> None:
    words = ("partage.dev/gpu-milli=300", "partage.dev/gpu-memory=4Gi")
    flags = tuple(flag for word in words for flag in ("--annotation", word))
    container = run(podman, "-d", *flags, *WAITS)
    (record,) = stage.held()
    assert (record["id"], record["grants"][0]["share"], record["grants"][0]["memory"]) == (container, 300, 4 << 30)


def test_cards_are_never_overbooked_and_a_refusal_reaches_the_user(
    docker: Docker, podman: Podman, stage: SharesStage
) -> None:
    run(docker, "-d", *asked("PARTAGE_SHARE=600"), *WAITS)
    for engine in (docker, podman):
        why = refused(engine, *asked("PARTAGE_SHARE=500"), "tools", "true")
        assert "partage: no card has a share of 500 milli left; the most that is free on one card is 400" in why
        wrong = refused(engine, *asked("PARTAGE_SHAER=500"), "tools", "true")
        assert "PARTAGE_SHAER is no word that partage knows; did you mean PARTAGE_SHARE?" in wrong
    assert len(stage.held()) == 1


def test_what_ends_is_free_at_once_where_it_is_removed(engine: Engine, stage: SharesStage) -> None:
    for _ in range(3):
        assert run(engine, "--rm", *asked("PARTAGE_SHARE=1000"), "tools", "echo", "yes") == "yes"
        stage.wait_nothing_held()
    refused(engine, *asked("PARTAGE_SHARE=1000"), "tools", "no-such-program")
    stage.wait_nothing_held()


def test_one_that_is_started_again_finds_the_place_it_kept(engine: Engine, stage: SharesStage) -> None:
    run(engine, "--name", "again", *asked("PARTAGE_SHARE=700"), "tools", "true")
    assert "room is kept" in refused(engine, *asked("PARTAGE_SHARE=700"), "tools", "true")
    engine.said("start", "-a", "again")
    assert [each["n"] for each in stage.held()] == [2]
    engine.end("again")
    assert run(engine, "--rm", *asked("PARTAGE_SHARE=700"), "tools", "echo", "yes") == "yes"


def test_docker_restarts_a_container_in_its_place_on_a_full_card(docker: Docker, stage: SharesStage) -> None:
    script = "sleep 0.5; exit 1"
    run(docker, "-d", "--restart", "always", *asked("PARTAGE_SHARE=700"), "tools", "sh", "-c", script)
    until("it was created three times", lambda: None if stage.held()[0]["n"] >= 3 else str(stage.held()), _WITHIN_S)
    assert "no card has a share of 700 milli left" in refused(docker, *asked("PARTAGE_SHARE=700"), "tools", "true")


@pytest.mark.parametrize("killed_one", ["agent", "broker"])
def test_whoever_starts_again_knows_who_has_a_share(engine: Engine, stage: SharesStage, killed_one: str) -> None:
    container = run(engine, "-d", *asked("PARTAGE_SHARE=600", "PARTAGE_MEMORY=4g"), *WAITS)
    {"agent": stage.agent, "broker": stage.broker}[killed_one].restart()
    assert "400 milli" in refused(engine, *asked("PARTAGE_SHARE=500"), "tools", "true")
    assert engine.done("exec", container, *LARGE, "--mib", "4096").returncode != 0
    engine.end(container)
    stage.wait_nothing_held()


def test_a_container_waits_for_an_agent_that_is_starting(engine: Engine, stage: SharesStage) -> None:
    stage.agent.kill()
    with ThreadPoolExecutor(1) as beside:
        said = beside.submit(run, engine, "--rm", *asked("PARTAGE_SHARE=300"), "tools", "echo", "yes")
        assert run(engine, "--rm", "tools", "echo", "yes") == "yes", "who asks for nothing waits for nobody"
        stage.agent.restart()
        assert said.result() == "yes"


def test_containers_outlive_a_daemon_of_docker_that_is_killed(docker: Docker, stage: SharesStage) -> None:
    container = run(docker, "-d", *asked("PARTAGE_SHARE=600", "PARTAGE_MEMORY=4g"), *WAITS)
    docker.daemon.restart()
    assert container in docker.running()
    assert docker.done("exec", container, *LARGE, "--mib", "4096").returncode != 0
    assert "400 milli" in refused(docker, *asked("PARTAGE_SHARE=500"), "tools", "true")


def test_while_no_broker_answers_no_container_starts_with_a_share(engine: Engine, stage: SharesStage) -> None:
    stage.broker.kill()
    why = refused(engine, *asked("PARTAGE_SHARE=300"), "tools", "true")
    assert "partage: no broker answers on this machine" in why
    assert run(engine, "--rm", "tools", "echo", "yes") == "yes", "others start"
    stage.broker.restart()
    stage.wait_nothing_held()
    assert run(engine, "--rm", *asked("PARTAGE_SHARE=300"), "tools", "echo", "yes") == "yes"


def test_a_container_with_anothers_socket_gets_nothing_by_it(engine: Engine, stage: SharesStage) -> None:
    owner = run(engine, "-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), *WAITS)
    (known,) = told_by(stage.machine).containers
    volume = f"/{PARENT}/{known.key}:/run/partage/claims/{owner}:ro"
    thief = run(engine, "-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), "-v", volume, *WAITS)
    assert engine.done("exec", owner, *LARGE, "--mib", "64").returncode == 0
    assert engine.done("exec", thief, *LARGE, "--mib", "64").returncode != 0


def test_the_default_runtime_starts_who_asks_for_nothing_also_without_an_agent(
    docker: Docker, stage: SharesStage
) -> None:
    with away(stage.agent):
        assert docker.run("--rm", "cuda", "sh", "-c", "echo $NVIDIA_VISIBLE_DEVICES") == "all"


def test_the_guard_of_the_default_runtime_keeps_cards_from_who_asks_for_none(
    docker: Docker, stage: SharesStage
) -> None:
    stage.machine.run("mknod", "/opt/card", "c", "195", "0")
    words = ("--device", "/opt/card:/dev/nvidia0", "tools", "ls", "/dev/nvidia0")
    kept, handed = (docker.done("run", "--rm", *flags, *words) for flags in ((), ("--runtime", RUNTIME)))
    assert "No such file" in kept.stderr
    assert handed.returncode == 0, handed.stderr


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        (["--privileged"], "reaches every card by its device rules"),
        (["--cap-add", "SYS_ADMIN"], "may undo its limits by CAP_SYS_ADMIN"),
        (["--pid", "host"], "shares its processes with others"),
        (["--pid", "container:other"], "shares its processes with others"),
    ],
)
def test_a_container_in_which_no_share_would_hold_is_refused(engine: Engine, flags: list[str], why: str) -> None:
    engine.run("-d", "--name", "other", *WAITS)
    said = refused(engine, *asked("PARTAGE_SHARE=300"), *flags, "tools", "true")
    assert f"partage: the container {why}, so no share would hold in it; leave out --" in said


def test_an_image_asks_like_its_user_who_may_take_that_back(engine: Engine, stage: SharesStage) -> None:
    run(engine, "-d", "asking", "sleep", "100000")
    assert list(stage.held_milli().values()) == [300]
    run(engine, "-d", *asked("PARTAGE_SHARE="), "asking", "sleep", "100000")
    assert list(stage.held_milli().values()) == [300]


def test_the_image_of_a_container_asks_as_that_did(engine: Engine, stage: SharesStage) -> None:
    container = run(engine, "-d", *asked("PARTAGE_SHARE=200"), *WAITS)
    engine.said("commit", container, "committed")
    run(engine, "-d", "committed", "sleep", "100000")
    assert list(stage.held_milli().values()) == [400]


def test_another_runtime_gives_no_share(engine: Engine, stage: SharesStage) -> None:
    engine.run("-d", "--runtime", "runc", *asked("PARTAGE_SHARE=300"), *WAITS)
    assert stage.held() == []


def test_an_update_of_main_memory_changes_nothing_of_a_share(docker: Docker, stage: SharesStage) -> None:
    container = run(docker, "-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), *WAITS)
    before = stage.held()
    docker.said("update", "--memory", "8g", "--memory-swap", "8g", container)
    assert stage.held() == before
    assert docker.done("exec", container, *LARGE, "--mib", "4096").returncode != 0


def test_a_share_holds_below_another_parent_of_control_groups(docker: Docker, podman: Podman) -> None:
    words = ("--cgroup-parent", f"{podman.cgroup}/conmon", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"))
    container = run(docker, "-d", *words, *WAITS)
    within, beyond = (docker.done("exec", container, *LARGE, "--mib", mib) for mib in ("1024", "4096"))
    assert (within.returncode, beyond.returncode == 0) == (0, False), within.stderr


def test_podman_itself_refuses_a_container_without_a_control_group_of_its_own(podman: Podman) -> None:
    words = ("run", "--rm", "--runtime", RUNTIME, "--cgroups", "disabled", *asked("PARTAGE_SHARE=300"))
    done = podman.program("podman", *words, "tools", "echo", "yes")
    assert "runtime partage is not compatible with NoCgroups" in done.stderr


@pytest.mark.extended("starts more than a hundred containers; smaller crowds are in the soak")
def test_a_hundred_that_are_created_at_once_fill_a_card_and_no_more(docker: Docker, stage: SharesStage) -> None:
    with ThreadPoolExecutor(CROWD) as crowd:
        words = ("run", "-d", "--runtime", RUNTIME, *asked("PARTAGE_SHARE=10"), *WAITS)
        ended = list(crowd.map(lambda _: docker.done(*words), range(CROWD)))
    without = [each.stderr for each in ended if each.returncode != 0]
    assert [why for why in without if "partage: no card has a share of 10 milli left" not in why] == []
    assert (list(stage.held_milli().values()), len(docker.running())) == ([1000], 100)


def test_a_pod_in_yaml_has_the_shares_that_it_asks_for_in_any_dialect(podman: Podman, stage: SharesStage) -> None:
    limits = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "4096", "volcano.sh/vgpu-cores": "30"}
    container = {"name": "main", "image": "docker.io/library/tools:latest", "command": ["sleep", "100000"]}
    spec = {"containers": [{**container, "resources": {"limits": limits}}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
    podman.machine.write("/pod.json", json.dumps(pod))
    translated = podman.program(*PARTAGE, "translate", "--to", "podman", "/pod.json")
    assert translated.returncode == 0, translated.stderr
    podman.machine.write("/translated.yaml", translated.stdout)
    podman.said("--runtime", RUNTIME, "play", "kube", "--network", "none", "/translated.yaml")
    (record,) = stage.held()
    assert (record["grants"][0]["share"], record["grants"][0]["memory"]) == (300, 4 << 30)
    podman.said("pod", "rm", "-f", "-t", "0", "pod")
