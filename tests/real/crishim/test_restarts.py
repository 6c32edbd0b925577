"""crishim is exchanged and killed while the node works: no call fails, no container is touched or doubled."""

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
from support.crishim_stage import SOCKET, Stage, whole
from unit.gpu_node.nodes import FIRST, SECOND

RESTARTS = 10
PER_SECOND = 200


@contextmanager
def load(stage: Stage) -> Generator[subprocess.Popen[str]]:
    """A client of grpc-go, as kubelet is, that calls all the time and ends at the first call that fails."""
    command = [str(build() / "client"), "-target", f"crishim={SOCKET}", "-method", "mixed", "-rounds", "1"]
    with subprocess.Popen(
        [*stage.machine.way_in, *command, "-seconds", "300"], stderr=subprocess.PIPE, text=True
    ) as calls:
        try:
            yield calls
        finally:
            calls.kill()


def calls_until_now(stage: Stage) -> float:
    """All that came to the crishim of now."""
    return sum(value for name, value in stage.metrics().items() if name.startswith("partage_crishim_calls_total"))


def ids(stage: Stage, pods: list[Pod]) -> dict[str, str]:
    """The running container of each pod."""
    return {each.pod: each.id for each in stage.containers() if each.running and each.pod in {pod.uid for pod in pods}}


def doubled(stage: Stage) -> list[tuple[str, str]]:
    """Containers of one pod and one name of which more than one runs."""
    running = Counter((each.pod, each.name) for each in stage.containers() if each.running)
    return [who for who, count in running.items() if count > 1]


@pytest.mark.timeout(180)
def test_ten_graceful_restarts_under_load_cost_no_call(stage: Stage) -> None:
    before = [stage.idle_pod(), stage.granted_pod(whole(FIRST))]
    for pod in before:
        pod.wait_running()
    had = ids(stage, before)
    with load(stage) as calls:
        for _ in range(RESTARTS):
            stage.replace()
            stage.idle_pod("meanwhile").wait_running()
            if calls.poll() is not None and calls.stderr is not None:
                pytest.fail(f"a call failed: {calls.stderr.read()}")
        earlier, began_s = calls_until_now(stage), time.monotonic()
        time.sleep(2)
        rate = (calls_until_now(stage) - earlier) / (time.monotonic() - began_s)
        assert calls.poll() is None
    assert rate > PER_SECOND
    assert ids(stage, before) == had
    refusals = [line for line in stage.crishim.program.log.read_text().splitlines() if "defect" in line]
    assert refusals == []


@pytest.mark.timeout(180)
def test_ten_kills_while_containers_are_made_neither_double_nor_touch_one(stage: Stage) -> None:
    before = [stage.idle_pod(), stage.granted_pod(whole(FIRST))]
    for pod in before:
        pod.wait_running()
    had, whims = ids(stage, before), random.Random(7)  # noqa: S311  no secret
    storm = [stage.idle_pod("storm", restart="Always") for _ in range(11)]
    storm.append(stage.granted_pod(whole(SECOND), what="storm", restart="Always"))
    for number in range(RESTARTS):
        time.sleep(whims.uniform(0, 0.6))
        stage.crishim.kill()
        stage.start_another()
        assert doubled(stage) == [], f"after kill {number}"
        if number in (3, 6):
            storm += [stage.idle_pod("storm", restart="Always") for _ in range(4)]
    for pod in storm:
        pod.wait_running(within_s=90)
    assert doubled(stage) == []
    assert ids(stage, before) == had
    for pod in before:
        pod.refresh()
        assert pod.container()["restartCount"] == 0


def test_a_new_crishim_knows_who_holds_what(stage: Stage) -> None:
    stage.granted_pod(whole(FIRST)).wait_running()
    stage.crishim.kill()
    stage.start_another()
    second = stage.granted_pod(whole(FIRST))
    assert "other containers on the node hold it" in stage.refused(second)


def test_a_stream_that_is_open_lasts_as_long_as_its_pod(stage: Stage) -> None:
    """An exec goes past crishim once it is set up, so exchanging crishim does not end it."""
    pod = stage.idle_pod()
    pod.wait_running()
    kubectl = stage.rig.cluster.kubectl
    command = [str(kubectl.program), f"--kubeconfig={kubectl.kubeconfig}", "exec", "-i", "-n", pod.namespace, pod.name]
    with subprocess.Popen(
        [*command, "--", "cat"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
        env={"HOME": str(kubectl.home)},
    ) as cat:
        try:
            assert cat.stdin is not None
            assert cat.stdout is not None
            for word in ("before\n", "after\n"):
                cat.stdin.write(word)
                assert cat.stdout.readline() == word
                stage.replace()
        finally:
            cat.kill()


def test_kubelet_outlives_a_crishim_that_is_away_for_long(stage: Stage) -> None:
    pod = stage.idle_pod()
    pod.wait_running()
    stage.crishim.kill()
    late = stage.idle_pod("late")
    time.sleep(8)
    stage.start_another()
    late.wait_running(within_s=60)
    pod.refresh()
    assert pod.container()["restartCount"] == 0


def test_containerd_may_be_killed_and_come_back(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST))
    pod.wait_running()
    stage.node.containerd.restart()
    late = stage.granted_pod(whole(SECOND))
    late.wait_running(within_s=60)
    pod.refresh()
    assert pod.container()["restartCount"] == 0
    until("crishim serves it", lambda: None if stage.metrics()["partage_crishim_open_connections"] else "nobody's")
