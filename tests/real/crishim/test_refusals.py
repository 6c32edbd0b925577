"""What may not start does not start, and says why in one sentence, which is what `kubectl describe pod` shows.

The sentences are promises: users search for them, and events of one cause are counted together.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from partage_plugins.codecs import encode_allocation, key_id, sign
from partage_plugins.vocabulary import Allocation, CardId, ContainerName, GpuGrant, Kind, NodeName, PodUid
from partage_plugins.vocabulary.keys import ALLOCATION, SIGNATURE
from rig.client import pod_status
from rig.client.binding import bind, binding, signed
from rig.client.manifests import a_container
from rig.client.pods import Pod
from rig.client.wait import until
from rig.errors import NeverHappened
from support.crishim_stage import (
    IDLE,
    INVENTORY,
    KUBELETS,
    LOST,
    MEMORY,
    NODE,
    Stage,
    allocation,
    half,
    public_file,
    whole,
)
from unit.gpu_node.nodes import FIRST, SECOND

ANEW = "delete the pod, so that its successor gets an allocation of its own"
MOVE = "Delete the pod to move it"
HELD = (
    f"partage: card {FIRST} has not enough compute left for this container: other containers on the node hold it; "
    "kubelet tries again, and where this stays, delete the pod to move it"
)
KUBELET_HEARS_S = 1.5
Annotations = Mapping[str, str]


def unknown(key: Ed25519PrivateKey) -> str:
    return (
        f"allocation: signed with key {key_id(key.public_key())}, which this node does not trust; "
        "was the key rotated before its public half reached /etc/partage/keys.d?"
    )


def bound(stage: Stage, annotations: Callable[[Pod], Annotations], **said: Any) -> Pod:
    """A pod that was bound with whatever somebody made up."""
    pod = stage.unbound_pod(**said)
    bind(stage.rig.cluster.api, pod, NODE, annotations(pod))
    return pod


def good(stage: Stage, pod: Pod) -> dict[str, str]:
    return signed(allocation(pod, whole(FIRST)), stage.key)


def test_an_allocation_without_a_signature(stage: Stage) -> None:
    """As anybody can write one who may create pods, past every scheduler."""
    mine = encode_allocation(Allocation(gen=1, pod=PodUid("1-2"), node=NodeName(NODE), containers=one(whole(FIRST))))
    pod = stage.idle_pod(annotations={ALLOCATION: mine})
    assert stage.refused(pod) == (
        "partage: this pod's allocation has no signature; only the scheduler may write alloc.partage.dev/ "
        f"annotations: {ANEW}"
    )


def one(*grants: GpuGrant) -> dict[ContainerName, dict[Kind, object]]:
    return {ContainerName("main"): {Kind("gpu"): grants}}


def test_a_forged_allocation_by_a_key_of_ones_own(stage: Stage) -> None:
    key = Ed25519PrivateKey.generate()
    assert stage.refused(stage.granted_pod(whole(FIRST), key=key)) == unknown(key)


def test_a_forged_allocation_in_the_name_of_a_good_key(stage: Stage) -> None:
    name = key_id(stage.key.public_key())

    def forged(pod: Pod) -> Annotations:
        annotations = signed(allocation(pod, whole(FIRST)), Ed25519PrivateKey.generate())
        return {**annotations, SIGNATURE: f"{name}:{annotations[SIGNATURE].partition(':')[2]}"}

    assert stage.refused(bound(stage, forged)) == (
        f"allocation: the signature of key {name} does not match; it was changed after it was signed"
    )


def test_an_allocation_that_was_changed_after_it_was_signed(stage: Stage) -> None:
    def changed(pod: Pod) -> Annotations:
        annotations = signed(allocation(pod, half(FIRST)), stage.key)
        return {**annotations, ALLOCATION: annotations[ALLOCATION].replace('"share":500', '"share":501')}

    assert stage.refused(bound(stage, changed)) == (
        f"allocation: the signature of key {key_id(stage.key.public_key())} does not match; "
        "it was changed after it was signed"
    )


def test_a_signature_that_is_none(stage: Stage) -> None:
    pod = bound(stage, lambda pod: {**good(stage, pod), SIGNATURE: "signed"})
    assert stage.refused(pod) == "allocation: the signature is not '<16 hex digits>:<88 characters of base64>'"


def test_an_allocation_of_another_pod(stage: Stage) -> None:
    owner = stage.granted_pod(whole(FIRST))
    owner.wait_running()
    thief = stage.idle_pod(annotations={name: owner.annotations[name] for name in (ALLOCATION, SIGNATURE)})
    assert stage.refused(thief) == f"partage: this pod's allocation was made for another pod; {ANEW}"


def test_an_allocation_for_another_node(stage: Stage) -> None:
    pod = bound(stage, lambda pod: signed(allocation(pod, whole(FIRST), node="n2"), stage.key))
    assert stage.refused(pod) == f"partage: this pod's allocation was made for another node; {ANEW}"


def test_an_allocation_older_than_one_that_was_in_force(stage: Stage) -> None:
    """A live change took a card away; its owner puts the old annotations back and lets the container crash."""
    pod = stage.unbound_pod(restart="Always")
    older = signed(allocation(pod, whole(FIRST), whole(SECOND), gen=1), stage.key)
    stage.rig.cluster.bind(pod, NODE, allocation(pod, whole(FIRST), gen=2), signed_by=stage.key)
    pod.wait_running()
    pod.annotate(older)
    assert refused_in_the_end(stage, pod) == (
        f"partage: this pod's allocation is older than one that was in force here before; {ANEW}"
    )


def refused_in_the_end(stage: Stage, pod: Pod) -> str:
    """Kubelet hears of new annotations a moment later than of a container's end; then that start was the old one's."""
    time.sleep(KUBELET_HEARS_S)
    stage.kill_container(pod)
    try:
        return pod.wait_waiting("CreateContainerError", within_s=20)
    except NeverHappened:
        stage.kill_container(pod)
    return stage.refused(pod)


def test_a_newer_allocation_is_in_force_from_the_next_start(stage: Stage) -> None:
    pod = stage.granted_pod(whole(FIRST), restart="Always")
    pod.wait_running()
    pod.annotate(signed(allocation(pod, whole(SECOND), gen=2), stage.key))
    time.sleep(KUBELET_HEARS_S)
    stage.kill_container(pod)
    pod.wait_running()
    assert pod.exec("sh", "-c", "ls /dev/nvidia?").split() == ["/dev/nvidia0"]


def test_a_key_that_was_removed(stage: Stage) -> None:
    key = Ed25519PrivateKey.generate()
    path, content = public_file(key)
    stage.write(path, content)
    pod = stage.granted_pod(whole(FIRST), key=key, restart="Always")
    pod.wait_running()
    stage.machine.path(path).unlink()
    stage.kill_container(pod)
    assert stage.refused(pod) == unknown(key)


def test_a_key_that_signs_no_longer_still_serves_old_pods(stage: Stage) -> None:
    """After a rotation: new pods are signed with the new key, old ones restart by the old one's public half."""
    former, latter = Ed25519PrivateKey.generate(), Ed25519PrivateKey.generate()
    old_path, content = public_file(former)
    stage.write(old_path, content)
    old = stage.granted_pod(whole(FIRST), key=former, restart="Always")
    old.wait_running()
    new_path, content = public_file(latter)
    stage.write(new_path, content)
    stage.granted_pod(whole(SECOND), key=latter).wait_running()
    stage.kill_container(old)
    old.wait_running()
    assert old.container()["restartCount"] == 1
    for path in (old_path, new_path):
        stage.machine.path(path).unlink()


@pytest.mark.parametrize(
    ("spoilt", "where"),
    [
        (lambda text: text[: len(text) // 2], "$ is not what is allowed there: JSON"),
        (lambda text: "", "$ is not what is allowed there: JSON"),
        (lambda text: text.replace('"v":1', '"v":2'), "$.v is not what is allowed there: 1"),
        (lambda text: text.replace('"gen":1', '"gen":0'), "$.gen is not what is allowed there: "),
        (
            lambda text: text.replace('"share":1000', '"share":-1'),
            "$.containers.main.gpu[0].share is not what is allowed",
        ),
        (lambda text: "[" * 40 + "]" * 40, "$ is not what is allowed there: a depth of 32"),
    ],
    ids=["truncated", "empty", "of a version that is not known", "of no generation", "negative", "too deep"],
)
def test_an_allocation_that_cannot_be_read(stage: Stage, spoilt: Callable[[str], str], where: str) -> None:
    """Even one that our own key has signed."""

    def annotations(pod: Pod) -> Annotations:
        text = spoilt(encode_allocation(allocation(pod, whole(FIRST))))
        return {ALLOCATION: text, SIGNATURE: sign(text, stage.key)}

    said = stage.refused(bound(stage, annotations))
    assert said.startswith(f"partage: this pod's allocation cannot be read: {where}"), said
    assert said.endswith(f"; {ANEW}")


def test_an_allocation_that_is_too_large(stage: Stage) -> None:
    """The API server stores one in a Binding, and then no status of the pod; so it is told in an event."""
    pod = stage.unbound_pod()
    text = encode_allocation(allocation(pod, whole(FIRST))) + " " * (256 << 10)
    annotations = {ALLOCATION: text, SIGNATURE: sign(text, stage.key)}
    stage.rig.cluster.api.create(pod.path("binding"), binding(pod, NODE, annotations))
    sentence = (
        "Error: partage: this pod's allocation cannot be read: $ is not what is allowed there: at most 262144 bytes; "
        f"{ANEW}"
    )
    until(
        "an event tells of it",
        lambda: None if sentence in [each.message for each in pod.events()] else str(pod.events()),
    )
    pod.delete_and_wait(grace_s=0)


def test_an_allocation_that_needs_what_this_node_does_not_know(stage: Stage) -> None:
    def annotations(pod: Pod) -> Annotations:
        content = json.loads(encode_allocation(allocation(pod, whole(FIRST))))
        text = json.dumps({**content, "crit": ["gpu.swap"]})
        return {ALLOCATION: text, SIGNATURE: sign(text, stage.key)}

    assert stage.refused(bound(stage, annotations)) == (
        "partage: this pod's allocation needs what this node does not know; known are: containers, crit, gen, "
        "gpu.card, gpu.limit, gpu.memory, gpu.role, gpu.share, gpu.tags, node, pod, v; upgrade partage on this node"
    )


def test_more_than_a_card_has_left_and_the_end_of_it(stage: Stage) -> None:
    holder = stage.granted_pod(whole(FIRST))
    holder.wait_running()
    waiting = stage.granted_pod(whole(FIRST))
    assert stage.refused(waiting) == HELD
    holder.delete_and_wait()
    waiting.wait_running()


def test_the_same_card_twice_in_one_pod(stage: Stage) -> None:
    assert stage.refused(stage.granted_pod(whole(FIRST), whole(FIRST))) == HELD


def test_more_memory_than_a_card_has(stage: Stage) -> None:
    grant = GpuGrant(card=FIRST, share_milli=1000, limit_milli=1000, memory_bytes=MEMORY + 1)
    assert stage.refused(stage.granted_pod(grant)) == HELD.replace("compute", "memory")


@pytest.mark.parametrize(
    ("card", "sentence"),
    [
        ("GPU-0", f"partage: card GPU-0 is not on this node; was it taken out? {MOVE}"),
        (LOST, f"partage: card {LOST} is lost; see the node's kernel log. {MOVE}"),
        (
            KUBELETS,
            (
                f"partage: card {KUBELETS} belongs to kubelet's device manager on this node; delete the pod to move "
                "it, or reserve the card for partage"
            ),
        ),
    ],
    ids=["unknown", "lost", "kubelet's"],
)
def test_a_card_that_is_not_to_be_had(stage: Stage, card: CardId, sentence: str) -> None:
    assert stage.refused(stage.granted_pod(whole(card))) == sentence


def test_part_of_a_card_where_nobody_enforces_it(stage: Stage) -> None:
    assert stage.refused(stage.granted_pod(half(FIRST))) == (
        "partage: no plugin on this node enforces memory, share of gpu; install the isolation plugin on the node, "
        "or set enforce = advisory to start containers without limits in force"
    )


@pytest.mark.parametrize(
    ("said", "who"),
    [
        ({"more": {"securityContext": {"privileged": True}}}, "a privileged container"),
        (
            {"more": {"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}},
            "a container with CAP_SYS_ADMIN",
        ),
        ({"spec": {"hostPID": True}}, "a container in the node's process namespace (hostPID)"),
    ],
    ids=["privileged", "SYS_ADMIN", "hostPID"],
)
def test_part_of_a_card_where_limits_cannot_hold(stage: Stage, said: Mapping[str, Any], who: str) -> None:
    assert stage.refused(stage.granted_pod(half(FIRST), **said)) == (
        f"partage: {who} cannot be given part of a card, since limits do not hold in it; "
        "ask for whole cards, or change the container"
    )


@pytest.mark.usefixtures("default_crishim_afterwards")
def test_the_second_of_two_that_share_processes_where_one_can_enter_the_other(stage: Stage) -> None:
    stage.replace("--enforce", "advisory")
    added = {"securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}}
    side = a_container("side", image="busybox", command=IDLE, more=added)
    main = a_container(image="busybox", command=IDLE)
    shared = {"shareProcessNamespace": True}
    assert stage.refused(stage.granted_pod(half(FIRST), containers=[side, main], spec=shared)) == (
        "partage: a container that shares its processes with 'side', which can enter it, cannot be given part of a "
        "card, since limits do not hold in it; ask for whole cards, or change the container"
    )
    assert stage.granted_pod(half(SECOND), containers=[main, side], spec=shared).wait_waiting(
        "CreateContainerError", "side"
    ) == (
        "partage: a container that is privileged or has CAP_SYS_ADMIN or CAP_SYS_PTRACE cannot share processes with "
        "one that has part of a card, since limits would not hold there; change it, or do not share them"
    )
    stage.granted_pod(half(SECOND), containers=[main, side]).wait_running()


def test_a_volume_where_our_files_will_be(stage: Stage) -> None:
    volume = {"volumeMounts": [{"name": "own", "mountPath": "/var/run/partage/sub"}]}
    pod = stage.granted_pod(whole(FIRST), more=volume, spec={"volumes": [{"name": "own", "emptyDir": {}}]})
    assert stage.refused(pod) == (
        "partage: the container mounts a volume at '/var/run/partage/sub', which meets /run/partage of its grant; "
        "mount the volume elsewhere"
    )


def test_devices_of_a_kind_that_no_plugin_here_knows(stage: Stage) -> None:
    pod = stage.unbound_pod()
    grants = {ContainerName("main"): {Kind("quantum"): [{"bits": 3}]}}
    mine = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(NODE), containers=grants)
    stage.rig.cluster.bind(pod, NODE, mine, signed_by=stage.key)
    assert stage.refused(pod) == ("partage: no plugin for quantum is in force on this node; see the logs of crishim")


def test_a_board_that_its_plugin_refuses(stage: Stage) -> None:
    pod = stage.unbound_pod()
    grants = {ContainerName("main"): {Kind("fpga"): [{"board": "fpga7"}]}}
    mine = Allocation(gen=1, pod=PodUid(pod.uid), node=NodeName(NODE), containers=grants)
    stage.rig.cluster.bind(pod, NODE, mine, signed_by=stage.key)
    assert stage.refused(pod) == "FPGA board fpga7 is not on this node; was it taken out?"


def test_any_card_while_nobody_knows_what_there_is_and_then_it_starts(stage: Stage) -> None:
    inventory = stage.machine.path(INVENTORY)
    content = inventory.read_text()
    inventory.unlink()
    pod = stage.granted_pod(whole(FIRST))
    assert stage.refused(pod) == (
        "partage: this node's inventory is missing or cannot be read; is partage-advertiser running? "
        "kubelet tries again"
    )
    stage.write(INVENTORY, content)
    pod.wait_running()


def test_a_refusal_touches_no_other_container_of_the_pod_that_runs(stage: Stage) -> None:
    """And takes nothing: the card that was not given is free."""
    refused = stage.granted_pod(half(FIRST))
    stage.refused(refused)
    stage.granted_pod(whole(FIRST)).wait_running()
    refused.refresh()
    assert pod_status.state(refused.container())[0] == "waiting"
