"""A container with something mounted over our mounts is found, reported and stopped."""

from __future__ import annotations

from partage_advertiser.condition_changes import ConditionChange
from partage_advertiser.findings import FindingsFolder
from rig.client.pods import Pod
from rig.client.wait import until
from rig.images import SymbolicLink
from support.isolation_stage import SERVING, IsolationStage, ask, image, memory

_LINKED = "linked"


def idle(stage: IsolationStage) -> Pod:
    """A running pod with part of a card, which it does not use."""
    return stage.limited_pod(memory(2048), command=("sleep", "3600")).wait_running()


def cover(stage: IsolationStage, pod: Pod) -> None:
    """Mount something over our folder as the container sees it; how a program gets that right is out of scope."""
    first = str(stage.inspected(pod)["pid"])
    stage.machine.run("mount", "--namespace", first, "-t", "tmpfs", "none", "/run/partage")


def told(stage: IsolationStage, pod: Pod) -> list[ConditionChange]:
    """The advertiser's condition changes from the broker's findings about the pod."""
    name = f"/{pod.name} "
    happenings = list[ConditionChange]()

    def why_not() -> str | None:
        happenings[:] = [one for one in FindingsFolder(stage.machine.path("/")).news() if name in one.message]
        return None if happenings else "no file names it"

    until(f"the broker has written down what {pod.name} did", why_not)
    return happenings


def test_who_covers_our_files_is_stopped_and_told_of(stage: IsolationStage) -> None:
    pod = idle(stage)
    cover(stage, pod)
    found = told(stage, pod)
    pod.wait_failed()
    assert {one.reason for one in found} == {"CoveredMounts"}
    assert {one.type for one in found} == {"Warning"}
    assert f"In container main of pod team-a/{pod.name} what partage mounted at /run/partage is" in found[0].message
    assert found[0].message.endswith("it is stopped.")


def test_who_sees_our_files_as_they_are_is_left_alone(stage: IsolationStage) -> None:
    looks = f"cat /etc/ld.so.preload; ls /run/partage /run/partage/lib; exec {' '.join(SERVING)}"
    honest = stage.limited_pod(memory(2048), command=("sh", "-c", looks)).wait_running()
    assert ask(honest, "take 500") == "took 500"
    wrong = idle(stage)
    cover(stage, wrong)
    wrong.wait_failed()
    assert ask(honest, "take 100") == "took 100"


def test_an_image_whose_run_is_a_link_is_left_alone_and_who_covers_its_place_is_stopped(stage: IsolationStage) -> None:
    stage.rig.registry.push(image().with_entries(SymbolicLink("/run", "/var/run")), _LINKED)
    pod = stage.limited_pod(memory(2048), image=_LINKED).wait_running()
    assert ask(pod, "take 500") == "took 500"
    mounts = stage.machine.run("cat", f"/proc/{stage.inspected(pod)['pid']}/mountinfo")
    assert " /var/run/partage " in mounts
    wrong = idle(stage)
    cover(stage, wrong)
    wrong.wait_failed()  # the audit has run meanwhile
    assert ask(pod, "take 100") == "took 100"
    cover(stage, pod)
    pod.wait_failed()
