"""Guarantees to others are enforced, or the container does not start; programs that evade them are stopped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from partage_simgpu.driver_root import LIBRARIES as DRIVER_LIBRARIES
from real.cli.asking import findings, statuses
from rig.machine.components import away, serving
from support.isolation_stage import IsolationStage, ask, broker, memory, seen

NO_MEMORY = "cuMemAlloc_v2 2"
REAL_DRIVER = f"/{DRIVER_LIBRARIES}/libcuda.so.1"


@pytest.fixture
def strict(stage: IsolationStage) -> Iterator[IsolationStage]:
    """Default settings of crishim."""
    stage.replace("--enforce", "strict")
    yield stage
    stage.replace()


def test_a_share_of_compute_is_promised_where_time_is_metered(strict: IsolationStage) -> None:
    strict.limited_pod(memory(2048, share=500)).wait_running()
    assert "holds memory, share and limit" in strict.partage("top", "--once")


@pytest.fixture
def unmetered(strict: IsolationStage) -> Iterator[IsolationStage]:
    """A broker that does not meter time."""
    with away(strict.broker), serving(strict.node.daemon(broker("--policy", "free-run"))):
        yield strict


def test_a_share_of_compute_is_refused_where_nobody_meters_time(unmetered: IsolationStage) -> None:
    strict = unmetered
    assert strict.refused(strict.limited_pod(memory(2048, share=500))) == (
        "partage: no plugin on this node enforces share of gpu; install the isolation plugin on the node, "
        "or set enforce = advisory to start containers without limits in force"
    )


def test_root_on_the_node_lowers_a_limit_while_the_container_runs(stage: IsolationStage) -> None:
    pod = stage.limited_pod(memory(4096)).wait_running()
    assert ask(pod, "take 2000") == "took 2000"
    shown = stage.partage("limits", pod.name, "--memory", "2Gi").splitlines()
    assert shown[-1].split()[:3] == [f"team-a/{pod.name}", "main", shown[-1].split()[2]]
    assert "2 GiB" in shown[-1]
    view = seen(pod)
    assert (view["total"], view["free"]) == (2048, 0)
    assert ask(pod, "take 64") == NO_MEMORY  # beyond the little that it was lent in advance
    assert ask(pod, "free") == "gave back"
    assert ask(pod, "take 1000") == "took 1000"
    stage.partage("limits", pod.name, "--reset")
    assert seen(pod)["total"] == 4096
    assert ask(pod, "take 2000") == "took 2000"


def test_the_doctor_finds_broker_and_library_well(stage: IsolationStage) -> None:
    found = findings(stage.machine)
    assert statuses(found, "broker", "library") == {"broker": "ok", "library": "ok"}


def test_no_volume_may_hide_what_holds_the_limits(stage: IsolationStage) -> None:
    volume = {"volumeMounts": [{"name": "own", "mountPath": "/var/run"}]}
    pod = stage.limited_pod(memory(1024), more=volume, spec={"volumes": [{"name": "own", "emptyDir": {}}]})
    assert stage.refused(pod) == (
        "partage: the container mounts a volume at '/var/run', which meets /run/partage of its grant; "
        "mount the volume elsewhere"
    )


def test_who_gets_around_the_library_is_found_and_stopped(stage: IsolationStage) -> None:
    """The library does not capture the driver's file under another name; the card's own figures count."""
    command = ("/bin/env", f"MEMORY_DRIVER={REAL_DRIVER}", "/usr/bin/memory", "serve")
    pod = stage.limited_pod(memory(1024), command=command).wait_running()
    assert ask(pod, "take 2000") == "took 2000"
    pod.wait_failed()
