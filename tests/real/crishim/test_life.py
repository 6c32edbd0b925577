"""All operations of pods go through crishim: kubelet has no other way to its runtime on this node."""

from __future__ import annotations

import time

from partage_crishim.decisions import STATUS
from rig.client.api import Patch
from rig.client.wait import until
from support.crishim_stage import OWN, Stage


def left_of(stage: Stage, uid: str) -> str | None:
    """Remaining containers of a pod; kubelet removes them a while after the pod is gone."""
    return ", ".join(str(each) for each in stage.containers() if each.pod == uid) or None


def test_a_pod_runs_speaks_is_entered_and_ends(stage: Stage) -> None:
    pod = stage.idle_pod(command=["sh", "-c", "echo hello from $HOSTNAME; exec sleep 600"]).wait_running()
    pod.wait_written(f"hello from {pod.name}\n")
    assert pod.exec("cat", "/etc/hostname") == f"{pod.name}\n"
    assert pod.tried("sh", "-c", "exit 7").status == 7
    pod.delete_and_wait()
    until("kubelet removes what is left of it", lambda: left_of(stage, pod.uid))


def test_kubelet_speaks_through_crishim(stage: Stage) -> None:
    """Counters grow, and the file that the advertiser checks is touched: kubelet does not bypass crishim."""
    note, before = stage.machine.path(f"{OWN}/kubelet-spoke"), stage.metrics()
    stage.idle_pod().wait_running()
    created = 'partage_crishim_calls_total{method="/runtime.v1.RuntimeService/CreateContainer"}'
    assert stage.metrics()[created] == before.get(created, 0) + 1
    until("kubelet asks for the status", lambda: None if time.time() - note.stat().st_mtime < 10 else STATUS)


def test_a_container_is_added_to_a_running_pod(stage: Stage) -> None:
    pod = stage.idle_pod().wait_running()
    debugger = {"name": "look", "image": "busybox", "command": ["hostname"], "imagePullPolicy": "IfNotPresent"}
    patch = {"spec": {"ephemeralContainers": [debugger]}}
    stage.rig.cluster.api.patch(pod.path("ephemeralcontainers"), patch, Patch.STRATEGIC)
    pod.wait("is looked at", lambda _: None if "terminated" in pod.container("look").get("state", {}) else "not yet")
    assert pod.logs("look") == f"{pod.name}\n"


def test_what_the_runtime_refuses_is_told_in_its_own_words(stage: Stage) -> None:
    pod = stage.idle_pod(command=["/no/such/program"])
    pod.wait_failed()
    assert "no such file or directory" in pod.container()["state"]["terminated"]["message"]
