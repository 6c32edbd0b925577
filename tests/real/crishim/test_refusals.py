"""What may not start does not start, and `kubectl describe pod` shows why in one sentence.

Each class of refusal has one example here; the unit tests cover every cause and its exact text. Only here is tested
what depends on kubelet or the API server: how annotations change under a running pod, and what a status may hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from partage_plugins.api.keys import ALLOCATION, SIGNATURE
from partage_plugins.codecs import encode_allocation, sign
from rig.client import pod_status
from rig.client.binding import binding, signed
from rig.client.manifests import a_container
from rig.client.pods import Pod
from rig.client.wait import found, until
from support.crishim_stage import IDLE, INVENTORY, LOST, NODE, Stage, allocation, half, whole
from unit.gpu_node.nodes import FIRST, SECOND

SUCCESSOR = "delete the pod, so that its successor gets an allocation of its own"
HELD = (
    f"partage: card {FIRST} has not enough compute left for this container: other containers on the node hold it; "
    "kubelet tries again, and where this stays, delete the pod to move it"
)
REFUSED = "CreateContainerError"
Makes = Callable[[Stage], Pod]


def with_volume(stage: Stage) -> Pod:
    mounts = {"volumeMounts": [{"name": "own", "mountPath": "/var/run/partage/sub"}]}
    return stage.granted_pod(whole(FIRST), more=mounts, spec={"volumes": [{"name": "own", "emptyDir": {}}]})


PRIVILEGED: Mapping[str, Any] = {"more": {"securityContext": {"privileged": True}}}
REFUSALS: Mapping[str, tuple[Makes, str]] = {
    "no signature": (
        lambda stage: stage.idle_pod(annotations={ALLOCATION: "{}"}),
        "partage: this pod's allocation has no signature; only the scheduler may write alloc.partage.dev/ annotations",
    ),
    "an unknown key": (
        lambda stage: stage.granted_pod(whole(FIRST), key=Ed25519PrivateKey.generate()),
        "allocation: signed with key ",
    ),
    "another pod's allocation": (
        lambda stage: stage.idle_pod(annotations=signed(allocation(stage.unbound_pod(), whole(FIRST)), stage.key)),
        f"partage: this pod's allocation was made for another pod; {SUCCESSOR}",
    ),
    "an unreadable allocation": (
        lambda stage: stage.idle_pod(annotations={ALLOCATION: "[", SIGNATURE: sign("[", stage.key)}),
        "partage: this pod's allocation cannot be read: $ is not what is allowed there: JSON",
    ),
    "a lost card": (
        lambda stage: stage.granted_pod(whole(LOST)),
        f"partage: card {LOST} is lost; see the node's kernel log. Delete the pod to move it",
    ),
    "a card twice": (lambda stage: stage.granted_pod(whole(FIRST), whole(FIRST)), HELD),
    "limits that no plugin enforces": (
        lambda stage: stage.granted_pod(half(FIRST)),
        "partage: no plugin on this node enforces memory, share of gpu; ",
    ),
    "limits that cannot hold": (
        lambda stage: stage.granted_pod(half(FIRST), **PRIVILEGED),
        "partage: a privileged container cannot be given part of a card",
    ),
    "a volume in the way": (with_volume, "partage: the container mounts a volume at '/var/run/partage/sub'"),
    "an annotation that names cards": (
        lambda stage: stage.idle_pod(annotations={"nvidia.cdi.k8s.io/pod": "nvidia.com/gpu=all"}),
        "partage: annotation 'nvidia.cdi.k8s.io/pod' of the pod asks for cards past every allocation",
    ),
    "a kind without a plugin": (
        lambda stage: stage.pod_with({"main": {"quantum": [{"bits": 3}]}}),
        "partage: no plugin for quantum is in force on this node; see the logs of crishim",
    ),
    "a plugin's own refusal": (
        lambda stage: stage.pod_with({"main": {"fpga": [{"board": "fpga7"}]}}),
        "FPGA board fpga7 is not on this node; was it taken out?",
    ),
}


def test_kubelet_shows_each_class_of_refusal_and_nothing_stays_reserved(stage: Stage) -> None:
    pods = {name: make(stage) for name, (make, _) in REFUSALS.items()}
    for name, pod in pods.items():
        wanted = REFUSALS[name][1]
        until(f"{name}: {wanted}", partial(another_word, stage, pod, wanted))
    stage.granted_pod(whole(FIRST)).wait_running()
    for pod in pods.values():
        pod.refresh()
        assert pod_status.state(pod.container())[0] == "waiting"


def another_word(stage: Stage, pod: Pod, wanted: str) -> str | None:
    """The refusal, if it is not the wanted one.

    At its first try a pod may find the card held by another one that is being refused in its turn.
    """
    said = stage.refused(pod)
    return None if said.startswith(wanted) else said


def test_an_allocation_that_is_too_large_is_told_in_an_event(stage: Stage) -> None:
    """The API server stores such an allocation in a Binding and then rejects every status update of the pod."""
    pod = stage.unbound_pod()
    text = encode_allocation(allocation(pod, whole(FIRST))) + " " * (256 << 10)
    annotations = {ALLOCATION: text, SIGNATURE: sign(text, stage.key)}
    stage.rig.cluster.api.create(pod.path("binding"), binding(pod, NODE, annotations))
    sentence = (
        "Error: partage: this pod's allocation cannot be read: $ is not what is allowed there: at most 262144 bytes; "
        f"{SUCCESSOR}"
    )
    pod.wait_event(sentence)
    pod.delete_and_wait(grace_s=0)


def test_a_newer_allocation_is_in_force_from_the_next_start(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST), restart="Always").wait_running()
    pod.annotate(signed(allocation(pod, whole(SECOND), gen=2), stage.key))
    kubelet_hears(stage, pod)

    def why_not() -> str | None:
        said = next_start(stage, pod)
        cards = pod.exec("sh", "-c", "ls /dev/nvidia?").split() if said == "running" else []
        return None if cards == ["/dev/nvidia0"] else f"{said} with {cards}"

    until("it has the card of the newer allocation", why_not)


def test_an_allocation_older_than_one_that_was_in_force(stage: Stage) -> None:
    """A live change took a card away; the owner restores the old annotations and lets the container crash."""
    pod = stage.granted_pod(whole(FIRST), gen=2, restart="Always").wait_running()
    pod.annotate(signed(allocation(pod, whole(FIRST), whole(SECOND)), stage.key))
    kubelet_hears(stage, pod)
    until("a start is refused", lambda: None if next_start(stage, pod) == REFUSED else "it was not")
    assert stage.refused(pod) == (
        f"partage: this pod's allocation is older than one that was in force here before; {SUCCESSOR}"
    )


def next_start(stage: Stage, pod: Pod) -> str:
    """Outcome of the next start.

    If kubelet had already begun to prepare it, it may still have the previous annotations.
    """
    stage.kill_container(pod)

    def outcome() -> str | None:
        pod.refresh()
        state = pod.container()["state"]
        return (
            "running" if "running" in state else REFUSED if state.get("waiting", {}).get("reason") == REFUSED else None
        )

    return found("kubelet starts it again", outcome)


def kubelet_hears(stage: Stage, pod: Pod) -> None:
    """Wait until kubelet knows the new annotations: a start before that has the old ones."""

    def why_not() -> str | None:
        pods = stage.rig.cluster.api.get(f"/api/v1/nodes/{NODE}/proxy/pods")["items"]
        known = next(each["metadata"]["annotations"] for each in pods if each["metadata"]["uid"] == pod.uid)
        return None if known.get(SIGNATURE) == pod.annotations[SIGNATURE] else f"it knows {known}"

    until(f"kubelet hears of the annotations of {pod.name}", why_not)


def test_more_than_a_card_has_left_and_the_end_of_it(stage: Stage) -> None:
    holder = stage.granted_pod(whole(FIRST)).wait_running()
    waiting = stage.granted_pod(whole(FIRST))
    assert stage.refused(waiting) == HELD
    holder.delete_and_wait()
    waiting.wait_running()


@pytest.mark.usefixtures("default_crishim_afterwards")
def test_parts_of_a_card_start_where_promises_are_advisory_but_beside_no_container_that_can_enter_them(
    stage: Stage,
) -> None:
    stage.replace("--enforce", "advisory")
    halves = [stage.granted_pod(half(FIRST)) for _ in range(2)]
    for pod in halves:
        pod.wait_running()
    assert "not enough compute" in stage.refused(stage.granted_pod(half(FIRST)))
    unmoved = stage.refused(stage.granted_pod(replace(half(SECOND), movable=True)))
    assert unmoved.startswith("partage: nothing on this node moves the memory of this container off its card")
    added = {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}
    side = a_container("side", image="busybox", command=IDLE, more=added)
    main = a_container(image="busybox", command=IDLE)
    shared = {"shareProcessNamespace": True}
    first = stage.granted_pod(half(SECOND), containers=[side, main], spec=shared)
    assert "shares its processes with 'side', which can enter it" in stage.refused(first)
    second = stage.granted_pod(half(SECOND), containers=[main, side], spec=shared)
    assert "cannot share processes" in second.wait_waiting("CreateContainerError", "side")
    stage.granted_pod(half(SECOND), containers=[main, side]).wait_running()


def test_no_card_while_the_inventory_is_missing_and_then_it_starts(stage: Stage) -> None:
    inventory = stage.machine.path(INVENTORY)
    content = inventory.read_text()
    inventory.unlink()
    pod = stage.granted_pod(whole(FIRST))
    assert stage.refused(pod).startswith("partage: this node's inventory is missing or cannot be read")
    stage.write(INVENTORY, content)
    pod.wait_running()
