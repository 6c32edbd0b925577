"""A container with part of a card sees its slice, is refused beyond it, and contains nothing else of ours."""

from __future__ import annotations

import pytest

from rig.client.pods import Pod
from rig.client.wait import until
from support.crishim_stage import devices_in_dev
from support.isolation_stage import CARD_MIB, IMAGE, SERVING, IsolationStage, ask, limits_of, memory, seen, told_by

NO_MEMORY = "cuMemAlloc_v2 2"
CONTEXT_MIB = 64
"""The size of a context is known more exactly once it exists."""


def ours(pod: Pod) -> set[str]:
    """Mount points of ours in the container."""
    points = {line.split()[4] for line in pod.exec("cat", "/proc/self/mountinfo").splitlines()}
    return {point for point in points if point.startswith(("/run/partage", "/etc/ld"))}


def test_a_container_sees_its_slice_and_is_refused_beyond_it(stage: IsolationStage) -> None:
    pod = stage.limited_pod(memory(4096)).wait_running()
    view = seen(pod)
    assert (view["total"], view["device"], view["nvml_total"]) == (4096, 4096, 4096)
    assert 0 < view["free"] < 4096
    assert ask(pod, "take 2048") == "took 2048"
    assert ask(pod, "take 2048") == NO_MEMORY
    assert 0 <= view["free"] - 2048 - seen(pod)["free"] <= CONTEXT_MIB
    assert ask(pod, "free") == "gave back"
    assert ask(pod, "take 3000") == "took 3000"


def test_neither_the_user_nor_a_read_only_root_matters(stage: IsolationStage) -> None:
    security = {"runAsUser": 1000, "runAsGroup": 1000, "readOnlyRootFilesystem": True}
    pod = stage.limited_pod(memory(1024), more={"securityContext": security}).wait_running()
    assert seen(pod)["total"] == 1024
    assert ask(pod, "take 2000") == NO_MEMORY


def test_users_of_its_own_do_not_matter_either(stage: IsolationStage) -> None:
    """Our mounts belong to the node's root, which is nobody in the pod's user namespace."""
    with devices_in_dev(stage.machine):
        pod = stage.limited_pod(memory(1024), spec={"hostUsers": False}).wait_running()
    assert pod.exec("cat", "/proc/self/uid_map").split()[1] != "0"
    assert seen(pod)["total"] == 1024
    assert ask(pod, "take 2000") == NO_MEMORY
    assert ask(pod, "take 500") == "took 500"


@pytest.mark.parametrize("base", ["busybox", "musl"])
def test_an_image_without_glibc_starts_as_ever(stage: IsolationStage, base: str) -> None:
    pod = stage.granted_pod(memory(1024), image=base).wait_running()
    assert pod.exec("/bin/echo", "hello").strip() == "hello"
    assert pod.tried("/bin/sh", "-c", "true").err == ""


def test_programs_say_nothing_of_the_library(stage: IsolationStage) -> None:
    """A missing object of the preload file would print a line on stderr of every program."""
    pod = stage.limited_pod(memory(1024)).wait_running()
    assert ours(pod) == {"/run/partage", "/run/partage/lib", "/etc/ld.so.preload", "/etc/ld-nix.so.preload"}
    ran = pod.tried("/bin/sh", "-c", "cat /proc/self/maps")
    assert "/run/partage/lib/libcuda.so.1" in ran.out
    assert ran.err == ""


def test_a_pod_without_a_grant_meets_nothing_of_ours(stage: IsolationStage) -> None:
    pod = stage.idle_pod(image=IMAGE).wait_running()
    assert not ours(pod)
    assert "libcuda.so.1: cannot open shared object file" in pod.tried(SERVING[0], "view").out


def test_whole_cards_need_no_broker_and_no_library(stage: IsolationStage) -> None:
    pod = stage.limited_pod(memory(CARD_MIB, share=1000)).wait_running()
    assert not ours(pod)
    assert seen(pod)["total"] > CARD_MIB


def test_a_pod_that_has_gone_is_forgotten(stage: IsolationStage) -> None:
    pod = stage.limited_pod(memory(1024)).wait_running()
    key = limits_of(stage.machine, pod).key
    assert stage.machine.path(f"/run/partage/containers/{key}").is_dir()
    pod.delete_and_wait()
    until("the broker has forgotten it", lambda: str(told_by(stage.machine).containers or "") or None)
    assert not stage.machine.path(f"/run/partage/containers/{key}").exists()
