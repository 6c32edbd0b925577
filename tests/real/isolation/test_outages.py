"""Running programs continue while their broker is down, limits hold when it is back, and nothing starts without one."""

from __future__ import annotations

from pathlib import Path

from partage_isolation.library.objects import OBJECTS, built
from partage_isolation.plugin import AWAY
from partage_isolation.store.folders import INSIDE, LIBRARY
from rig.client.pods import Pod
from rig.client.wait import until
from rig.machine.components import away
from support.isolation_stage import CARD_MIB, IsolationStage, ask, install_library, limits_of, memory, seen, told_by

NO_MEMORY = "cuMemAlloc_v2 2"
NOT_INITIALISED = "cuMemAlloc_v2 3"


def told(stage: IsolationStage, pod: Pod, used_mib: int) -> None:
    """Wait until the broker's figure is this one; it learns it by the program's next message or the next audit."""

    def why_not() -> str | None:
        used = limits_of(stage.machine, pod).cards[0].used_bytes >> 20
        return None if used == used_mib else f"it heard of {used} MiB"

    until(f"the broker hears that {pod.name} holds {used_mib} MiB", why_not)


def test_a_broker_that_was_killed_finds_everything_as_it_was(stage: IsolationStage) -> None:
    pod = stage.limited_pod(memory(4096)).wait_running()
    assert ask(pod, "take 2000") == "took 2000"
    told(stage, pod, 2000)
    before = limits_of(stage.machine, pod)
    stage.broker.restart()
    assert ask(pod, "take 2000") == NO_MEMORY
    assert ask(pod, "take 1000") == "took 1000"
    told(stage, pod, 3000)
    after = limits_of(stage.machine, pod)
    assert (after.key, after.cards[0].limit_bytes) == (before.key, before.cards[0].limit_bytes)
    assert [(each.pid, each.connected) for each in after.processes] == [(before.processes[0].pid, True)]


def test_without_a_broker_nothing_more_is_given_and_no_program_ends(stage: IsolationStage) -> None:
    pod = stage.limited_pod(memory(4096)).wait_running()
    assert ask(pod, "take 1000") == "took 1000"
    with away(stage.broker):
        assert ask(pod, "take 1000") == NOT_INITIALISED
        assert ask(pod, "free") == "gave back"
    assert ask(pod, "take 1000") == "took 1000"
    pod.refresh()
    assert pod.container()["restartCount"] == 0


def test_without_a_broker_a_limited_container_is_refused_until_it_is_back(stage: IsolationStage) -> None:
    with away(stage.broker):
        pod = stage.limited_pod(memory(1024))
        assert stage.refused(pod) == AWAY
        whole = stage.limited_pod(memory(CARD_MIB, share=1000)).wait_running()
        whole.delete_and_wait()
    pod.wait_running()
    assert seen(pod)["total"] == 1024


def test_a_new_library_is_for_new_containers_and_who_runs_keeps_the_old_one(
    stage: IsolationStage, tmp_path: Path
) -> None:
    old = stage.limited_pod(memory(2048)).wait_running()
    assert ask(old, "take 1000") == "took 1000"
    before = told_by(stage.machine).library
    for name in OBJECTS:
        (tmp_path / name).write_bytes((built() / name).read_bytes() + b"another version")
    installed = install_library(stage.machine, tmp_path)
    new = stage.limited_pod(memory(1024)).wait_running()
    assert seen(new)["total"] == 1024
    assert told_by(stage.machine).library == installed != before
    assert {library_of(old, stage), library_of(new, stage)} == {before, installed}
    assert ask(old, "take 1000") == NO_MEMORY
    assert install_library(stage.machine) == before  # as after a downgrade: new containers get it again
    assert told_by(stage.machine).library == before
    stage.machine.run("rm", "-r", installed)  # its only user goes with this test


def library_of(pod: Pod, stage: IsolationStage) -> str:
    mounts = stage.inspected(pod)["config"]["mounts"]
    (path,) = (str(each["host_path"]) for each in mounts if each["container_path"] == f"{INSIDE}/{LIBRARY}")
    return path
