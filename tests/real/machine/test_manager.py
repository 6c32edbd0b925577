"""The manager on real containerd, crishim, broker and simulated cards: what only the real thing can break."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import pytest

from partage_cli.machine.wire.messages import MANAGER_SOCKET
from rig import images
from rig.client.wait import until
from support.machine_stage import MachineStage, machine_up
from support.manager_lines import Gone, Json, Manager

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MachineStage]:
    with machine_up(2, say=print, keep_logs=tmp_path_factory.mktemp("logs")) as stage:
        stage.registry.push(images.busybox(), "docker.io/library/busybox")
        yield stage


@pytest.fixture
def manager(stage: MachineStage) -> Iterator[Manager]:
    asked = Manager(stage.machine.path(f"/{MANAGER_SOCKET}"))
    yield asked
    for each in asked.ask({"do": "ps", "all": True})["pods"]:
        asked.ask({"do": "rm", "name": each["name"], "force": True})


def pod(name: str, *argv: str, **limits: object) -> Json:
    named = {f"partage.dev/{key.replace('_', '-')}": value for key, value in limits.items()}
    container = {
        "name": "main",
        "image": "busybox",
        "command": argv or ("sleep", "600"),
        "resources": {"limits": named},
    }
    return {"metadata": {"name": name}, "spec": {"containers": [container], "restartPolicy": "Never"}}


def test_a_pod_runs_with_its_share_writes_and_ends_with_its_own_code(manager: Manager) -> None:
    ran = manager.ask({"do": "run", "pod": pod("a", "sh", "-c", "echo hello; exit 7", gpu_milli=300)})
    assert ran["is"] == "ran", ran
    (grant,) = ran["pod"]["containers"][0]["grants"]
    assert (grant["share_milli"], ran["pod"]["address"] != "") == (300, True)
    assert manager.ask({"do": "wait", "name": "a"}) == {"is": "ended", "exit_code": 7}
    told: list[Json] = []
    manager.ask({"do": "logs", "name": "a"}, told=told.append)
    assert [base64.b64decode(each["data"]) for each in told if each["is"] == "log"] == [b"hello"]


def test_a_program_that_is_not_there_is_told_and_leaves_nothing(stage: MachineStage, manager: Manager) -> None:
    answer = manager.ask({"do": "run", "pod": pod("a", "/nosuch", gpu_milli=300), "restart": "always"})
    assert (answer["is"], answer["code"], "/nosuch" in answer["why"]) == ("no", "runtime", True), answer
    until("nothing is left", lambda: None if stage.crictl("pods", "-q") == "" else "a sandbox is there", 20)
    assert [card["given_milli"] for card in manager.ask({"do": "info"})["cards"]] == [0, 0]


def test_a_manager_that_is_killed_finds_what_runs_and_restarts_what_ends(stage: MachineStage, manager: Manager) -> None:
    ran = manager.ask({"do": "run", "pod": pod("a", gpu_milli=600), "restart": "always"})
    assert ran["is"] == "ran", ran
    stage.machine.run("pkill", "-9", "-f", "partage_cli.machine.manager")
    until("the manager is back", lambda: _why_not_running(manager, restarts=0), 60)
    assert sorted(card["given_milli"] for card in manager.ask({"do": "info"})["cards"]) == [0, 600]
    assert manager.ask({"do": "signal", "name": "a", "number": 9}) == {"is": "done"}
    until("it is started again", lambda: _why_not_running(manager, restarts=1), 60)
    assert manager.ask({"do": "stop", "name": "a", "grace_s": 1}) == {"is": "done"}
    assert [each["phase"] for each in manager.ask({"do": "ps", "all": True})["pods"]] == ["stopped"]
    assert manager.ask({"do": "start", "name": "a"})["pod"]["phase"] == "running"


def _why_not_running(manager: Manager, *, restarts: int) -> str | None:
    try:
        answer = manager.ask({"do": "ps", "names": ["a"]})
    except Gone as error:
        return str(error)
    if answer["is"] == "no":
        return str(answer["why"])
    container = answer["pods"][0]["containers"][0]
    return None if (container["state"], container["restarts"]) == ("running", restarts) else str(container)
