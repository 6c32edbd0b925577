"""The page "Install" as a new user follows it: installation, shared cards, an upgrade, and removal."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from rig.client.pods import Pod
from rig.client.wait import until
from support.story_stage import StoryStage

Say = Callable[[str], None]
PARTS: Final = frozenset(("2. The cluster", "3. The nodes", "4. The first shared card", "Upgrade", "Take it out"))
"""The parts of the page whose commands are all typed."""
FIRST_KERNELS: Final = "from helm install to a kernel on every node"
_GIB: Final = 1 << 30
_numbers: Final = itertools.count()


def story(stage: StoryStage, say: Say) -> Mapping[str, float]:
    """Seconds of each leg. Raises if a user's container was touched, or if anything is left at the end."""
    try:
        return _story(stage, say)
    except BaseException as error:
        error.add_note(stage.told())
        raise


def _story(stage: StoryStage, say: Say) -> Mapping[str, float]:
    number = next(_numbers)
    _, *others = stage.trial.machines
    bystanders = [stage.bystander(node, f"by-{number}-{node}") for node in others]
    for pod in bystanders:
        pod.wait_running()
    files, objects, unconcerned = stage.files(), stage.objects(), stage.processes()
    legs = _Legs(say)

    pods = _came_into_force(stage, legs, number)
    before = stage.processes()
    stage.follow("Upgrade", release=1)
    legs.ended("upgrade")
    assert stage.processes() == before, "a container is not the one that it was"
    for pod in pods:
        _require_limits(stage, pod)
    later = stage.shared_pod(f"second-{number}")
    stage.kernel_at_s(later)
    legs.ended("second pod")

    stage.follow("Take it out", nodes=list(stage.trial.machines))
    for pod in (*pods, later):
        pod.wait_gone()
    legs.ended("all out")
    assert stage.processes() == unconcerned, "a container is not the one that it was"
    assert not any(stage.restarts().values()), stage.restarts()
    until("the cluster is as it was", lambda: _told(objects, stage.objects()))
    left = {node: found for node, now in stage.files().items() if (found := _told(files[node], now))}
    assert not left, left
    for pod in bystanders:
        pod.delete_and_wait()
    assert stage.followed == PARTS
    return legs.seconds


def _came_into_force(stage: StoryStage, legs: _Legs, number: int) -> list[Pod]:
    """Install, and return pods with shares, one on each node.

    Only the first node was drained; others run containers.
    """
    began_s = time.time()
    stage.follow("2. The cluster")
    legs.ended("helm install")
    told = stage.follow("3. The nodes")
    assert f"1 of 1 nodes are as asked at {stage.releases[0].version}" in told, told
    _, *others = stage.trial.machines
    if others:
        stage.follow("3. The nodes", nodes=others, drained=False)
    legs.ended("roll-out")
    pods = [stage.shared_pod(f"first-{number}-{node}", node) for node in stage.trial.machines]
    kernels_s = [stage.kernel_at_s(pod) for pod in pods]
    legs.ended("first pods")
    legs.note("from helm install to the first kernel", min(kernels_s) - began_s)
    legs.note(FIRST_KERNELS, max(kernels_s) - began_s)
    for pod in pods:
        _require_limits(stage, pod)
    told = stage.follow("4. The first shared card")
    assert "default/half: on a node" in told, told
    stage.kernel_at_s(stage.pages_pod())
    legs.ended("the page's pod")
    return pods


class _Legs:
    def __init__(self, say: Say) -> None:
        self.seconds: dict[str, float] = {}
        self._say, self._began_s = say, time.monotonic()

    def ended(self, name: str) -> None:
        now_s = time.monotonic()
        self.note(name, now_s - self._began_s)
        self._began_s = now_s

    def note(self, name: str, seconds: float) -> None:
        self.seconds[name] = round(seconds, 1)
        self._say(f"{name}: {seconds:.1f} s")


def _require_limits(stage: StoryStage, pod: Pod) -> None:
    """The program used the library to ask the broker for time, and has the limits that the pod requested."""
    told = stage.limits_of(pod)
    (card,) = told.cards
    assert (card.share_milli, card.granted_bytes) == (500, 4 * _GIB), card


def _told(before: Sequence[str], after: Sequence[str]) -> str | None:
    """Added and removed lines; None if there are none."""
    came, went = set(after) - set(before), set(before) - set(after)
    return "\n".join([*(f"+ {line}" for line in sorted(came)), *(f"- {line}" for line in sorted(went))]) or None
