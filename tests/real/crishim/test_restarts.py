"""crishim is replaced and killed while the node works: no call fails, no container is touched or duplicated.

`make soak-rounds` does the same with more rounds.
"""

from __future__ import annotations

import random
import subprocess
import time
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager

import pytest

from bench.splicing.programs import build
from rig.client.pods import Pod
from rig.client.wait import until
from rig.machine.components import WITH_ITS_PARENT
from support.crishim import ROUNDS, SOCKET
from support.crishim_stage import Stage, whole
from unit.gpu_node.nodes import FIRST, SECOND

AWAY_S = 4.0
"""Once, crishim is down for longer than kubelet waits between two tries."""
pytestmark = pytest.mark.timeout(600 + 120 * ROUNDS)


@contextmanager
def calling(stage: Stage, *flags: str) -> Generator[subprocess.Popen[str]]:
    """A grpc-go client, like kubelet, that calls crishim continuously."""
    command = [str(build() / "client"), "-target", f"crishim={SOCKET}", "-seconds", "3600", *flags]
    with subprocess.Popen(
        [*stage.machine.way_in, *WITH_ITS_PARENT, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as calls:
        try:
            yield calls
        finally:
            calls.kill()


@contextmanager
def cat(stage: Stage, pod: Pod) -> Generator[subprocess.Popen[str]]:
    """An exec that echoes its stdin. Once set up, its stream bypasses crishim."""
    kubectl = stage.rig.cluster.kubectl
    command = [str(kubectl.program), f"--kubeconfig={kubectl.kubeconfig}", "exec", "-i", "-n", pod.namespace, pod.name]
    pipe, home = subprocess.PIPE, {"HOME": str(kubectl.home)}
    with subprocess.Popen([*command, "--", "cat"], stdin=pipe, stdout=pipe, text=True, bufsize=1, env=home) as echo:
        try:
            yield echo
        finally:
            echo.kill()


def ids(stage: Stage, pods: list[Pod]) -> dict[str, str]:
    """The running container of each pod."""
    return {each.pod: each.id for each in stage.running() if each.pod in {pod.uid for pod in pods}}


def doubled(stage: Stage) -> list[tuple[str, str]]:
    """Pairs of pod and container name with more than one running container."""
    running = Counter((each.pod, each.name) for each in stage.running())
    return [who for who, count in running.items() if count > 1]


def running_pods(stage: Stage) -> list[Pod]:
    pods = [stage.idle_pod(), stage.granted_pod(whole(FIRST))]
    for pod in pods:
        pod.wait_running()
    return pods


def test_graceful_restarts_under_load_cost_no_call_and_no_open_stream(stage: Stage) -> None:
    before = running_pods(stage)
    had = ids(stage, before)
    with calling(stage, "-method", "mixed", "-rounds", "1") as calls, cat(stage, before[0]) as echo:
        assert echo.stdin is not None
        assert echo.stdout is not None
        for number in range(ROUNDS):
            stage.replace()
            stage.idle_pod("meanwhile").wait_running()
            echo.stdin.write(f"round {number}\n")
            assert echo.stdout.readline() == f"round {number}\n"
            if calls.poll() is not None and calls.stderr is not None:
                pytest.fail(f"a call failed: {calls.stderr.read()}")
    assert ids(stage, before) == had
    refusals = [line for line in stage.crishim.program.log.read_text().splitlines() if "defect" in line]
    assert refusals == []


def test_kills_while_containers_are_made_double_and_touch_none_and_free_no_card(stage: Stage) -> None:
    before = running_pods(stage)
    had, whims = ids(stage, before), random.Random(7)  # noqa: S311  no secret
    storm = [stage.granted_pod(whole(SECOND), what="storm", restart="Always")]
    for number in range(ROUNDS):
        storm += [stage.idle_pod("storm", restart="Always") for _ in range(3)]
        time.sleep(whims.uniform(0, 0.6))
        stage.crishim.kill()
        if not number:
            time.sleep(AWAY_S)
        stage.start_another()
        assert doubled(stage) == [], f"after kill {number}"
    for pod in storm:
        pod.wait_running()
    assert doubled(stage) == []
    assert ids(stage, before) == had
    for pod in before:
        pod.refresh()
        assert pod.container()["restartCount"] == 0
    assert "other containers on the node hold it" in stage.refused(stage.granted_pod(whole(FIRST)))


def test_containerd_may_be_killed_and_come_back(stage: Stage) -> None:
    """Calls fail at once while it is down, containers keep running, and clients reconnect when it serves."""
    pod = stage.granted_pod(whole(FIRST)).wait_running()
    with calling(stage, "-persist") as calls:
        assert calls.stdout is not None
        assert calls.stdout.readline().split()[1] == "ok"
        stage.node.containerd.kill()
        assert calls.stdout.readline().split()[1] == "Unavailable"
        time.sleep(AWAY_S)  # long enough that a client which is only turned away backs off between its tries
        stage.node.containerd.restart()
        assert calls.stdout.readline().split()[1] == "ok"
    stage.granted_pod(whole(SECOND)).wait_running()
    pod.refresh()
    assert pod.container()["restartCount"] == 0
    until("crishim serves it", lambda: None if stage.metrics()["partage_crishim_open_connections"] else "no connection")
