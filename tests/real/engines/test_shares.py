"""Shares for Podman's containers by the agent: enforced, counted once, and free again however a container ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

import pytest

from partage_isolation.store.folders import PARENT
from partage_plugins.vocabulary.places import ENGINES_FOLDER
from rig.client.wait import until
from support.engine_stage import AgentStage, agent_up
from support.isolation_stage import told_by

pytestmark = pytest.mark.timeout(300)
WAITS: Final = ("tools", "sleep", "100000")
LARGE: Final = ("allocate", "--kind", "large", "--count", "1")
_WITHIN_S: Final = 30.0


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentStage]:
    scratch = tmp_path_factory.mktemp("images")
    with agent_up(1, say=print, scratch=scratch, flags=("--look-every-s", "0.5", "--restart-hold-s", "600")) as stage:
        yield stage


@pytest.fixture
def stage(one: AgentStage) -> Iterator[AgentStage]:
    yield one
    one.podman.done("rm", "-f", "-t", "0", "-a")
    nothing_is_held(one)


def asked(*words: str) -> tuple[str, ...]:
    return tuple(flag for word in words for flag in ("-e", word))


def held(stage: AgentStage) -> list[dict[str, Any]]:
    folder = stage.machine.path(f"/{ENGINES_FOLDER}")
    return [json.loads(each.read_bytes()) for each in sorted(folder.glob("*.json"))]


def nothing_is_held(stage: AgentStage) -> None:
    until(
        "nothing is held any more",
        lambda: str(held(stage) or told_by(stage.machine).containers or "") or None,
        _WITHIN_S,
    )


def test_a_container_has_the_share_that_it_says_and_no_more(stage: AgentStage) -> None:
    podman = stage.podman
    container = podman.run("-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), *WAITS)
    (known,) = told_by(stage.machine).containers
    assert (known.pod.uid, known.engine_containers) == (container, (container,))
    within, beyond = (podman.done("exec", container, *LARGE, "--mib", mib) for mib in ("1024", "4096"))
    assert within.returncode == 0, within.stderr
    assert beyond.returncode != 0
    assert "memory" in beyond.stdout.lower()
    assert podman.run("--rm", "tools", "echo", "yes") == "yes", "others are none of ours"


def test_annotations_ask_as_variables_do(stage: AgentStage) -> None:
    words = ("partage.dev/gpu-milli=300", "partage.dev/gpu-memory=4Gi")
    flags = tuple(flag for word in words for flag in ("--annotation", word))
    container = stage.podman.run("-d", *flags, *WAITS)
    (record,) = held(stage)
    assert (record["id"], record["grants"][0]["share"], record["grants"][0]["memory"]) == (container, 300, 4 << 30)


def test_cards_are_never_overbooked_and_a_refusal_reaches_the_user(stage: AgentStage) -> None:
    stage.podman.run("-d", *asked("PARTAGE_SHARE=600"), *WAITS)
    refused = stage.podman.done("run", "--rm", *asked("PARTAGE_SHARE=500"), "tools", "true")
    assert refused.returncode != 0
    assert "partage: no card has a share of 500 milli left; the most that is free on one card is 400" in refused.stderr
    wrong = stage.podman.done("run", "--rm", *asked("PARTAGE_SHAER=500"), "tools", "true")
    assert "PARTAGE_SHAER is no word that partage knows; did you mean PARTAGE_SHARE?" in wrong.stderr
    assert len(held(stage)) == 1


def test_of_many_that_are_created_at_once_as_many_start_as_fit(stage: AgentStage) -> None:
    words = ("run", "-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), *WAITS)
    with ThreadPoolExecutor(6) as pool:
        done = list(pool.map(lambda _: stage.podman.done(*words), range(6)))
    assert sorted(each.returncode == 0 for each in done) == [False] * 3 + [True] * 3
    assert len(stage.podman.running()) == len(told_by(stage.machine).containers) == 3


def test_what_ends_is_free_at_once_where_it_is_removed(stage: AgentStage) -> None:
    for _ in range(3):
        assert stage.podman.run("--rm", *asked("PARTAGE_SHARE=1000"), "tools", "echo", "yes") == "yes"
        nothing_is_held(stage)
    missing = stage.podman.done("run", "--rm", *asked("PARTAGE_SHARE=1000"), "tools", "no-such-program")
    assert missing.returncode != 0
    nothing_is_held(stage)


def test_one_that_is_started_again_finds_the_place_it_kept(stage: AgentStage) -> None:
    podman = stage.podman
    podman.run("--name", "again", *asked("PARTAGE_SHARE=700"), "tools", "true")
    refused = podman.done("run", "--rm", *asked("PARTAGE_SHARE=700"), "tools", "true")
    assert "room is kept" in refused.stderr
    assert podman.done("start", "-a", "again").returncode == 0
    assert [each["n"] for each in held(stage)] == [2]
    podman.end("again")
    assert podman.run("--rm", *asked("PARTAGE_SHARE=700"), "tools", "echo", "yes") == "yes"


@pytest.mark.parametrize("killed_one", ["agent", "broker"])
def test_whoever_starts_again_knows_who_has_a_share(stage: AgentStage, killed_one: str) -> None:
    podman = stage.podman
    container = podman.run("-d", *asked("PARTAGE_SHARE=600", "PARTAGE_MEMORY=4g"), *WAITS)
    {"agent": stage.agent, "broker": stage.broker}[killed_one].restart()
    refused = podman.done("run", "--rm", *asked("PARTAGE_SHARE=500"), "tools", "true")
    assert "400 milli" in refused.stderr
    assert podman.done("exec", container, *LARGE, "--mib", "4096").returncode != 0
    podman.end(container)
    nothing_is_held(stage)


def test_while_no_broker_answers_no_container_starts_with_a_share(stage: AgentStage) -> None:
    stage.broker.kill()
    refused = stage.podman.done("run", "--rm", *asked("PARTAGE_SHARE=300"), "tools", "true")
    assert "partage: no broker answers on this machine" in refused.stderr
    assert stage.podman.done("run", "--rm", "tools", "true").returncode == 0, "others start"
    stage.broker.start()
    stage.broker.wait_ready()
    nothing_is_held(stage)
    assert stage.podman.run("--rm", *asked("PARTAGE_SHARE=300"), "tools", "echo", "yes") == "yes"


def test_a_container_with_anothers_socket_gets_nothing_by_it(stage: AgentStage) -> None:
    podman = stage.podman
    owner = podman.run("-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), *WAITS)
    (known,) = told_by(stage.machine).containers
    volume = f"/{PARENT}/{known.key}:/run/partage/claims/{owner}:ro"
    thief = podman.run("-d", *asked("PARTAGE_SHARE=300", "PARTAGE_MEMORY=4g"), "-v", volume, *WAITS)
    assert podman.done("exec", owner, *LARGE, "--mib", "64").returncode == 0
    assert podman.done("exec", thief, *LARGE, "--mib", "64").returncode != 0
