"""What pods may contain, by a real API server, for every writer: here RBAC gives all users every right over pods."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest

from partage_plugins.api.keys import ALLOCATION
from real.permissions.pod_attempts import (
    ALLOCATIONS,
    BY_NODE,
    DEVICES,
    FORGED,
    GRANTED,
    IN_VAIN,
    OWN_CHOICES,
    OWNED,
    SHARE,
    WAITS,
    Attempt,
    applying,
    creating,
    patching,
    path,
    putting,
)
from rig.client.api import Patch
from rig.client.binding import bind
from rig.client.cluster import Cluster
from rig.client.manifests import a_container, a_pod
from rig.client.resources import ADMISSION_BINDINGS, ADMISSION_POLICIES, PODS
from rig.client.rights import every_right
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import SCHEDULER, TEAM
from rig.identity.permissions import PODS_FILE, delivered

pytestmark = pytest.mark.slow

WRITERS = ("user", "admin")
DENIED = "denied request: partage: "


@pytest.fixture(scope="module", autouse=True)
def rights(admin: Cluster) -> Iterator[None]:
    parts = [f"pods/{part}" for part in ("status", "ephemeralcontainers", "resize", "binding")]
    rules = [{"apiGroups": [""], "resources": ["pods", *parts, "bindings"], "verbs": ["*"]}]
    with every_right(admin, "everybody-and-pods", rules):
        until("the policies are in force", lambda: _why_not_in_force(admin))
        yield


@pytest.fixture(scope="module", autouse=True)
def pods(rights: None, admin: Cluster) -> Iterator[None]:
    """A pending pod, and one with an allocation, which no test changes."""
    for pod in (
        a_pod(WAITS, scheduler="nobody", annotations={"theirs": "kept"}),
        a_pod(GRANTED, scheduler="nobody", limits=SHARE),
    ):
        admin.api.create(PODS.at(TEAM), pod)
    bind(admin.as_account(SCHEDULER).api, admin.pods.get(TEAM, GRANTED), "n1", OWNED)
    yield
    for name in (WAITS, GRANTED):
        admin.api.delete(path(name), {"gracePeriodSeconds": 0})


@pytest.fixture
def writer(cluster: Cluster, request: pytest.FixtureRequest) -> Cluster:
    writers = {"user": cluster.as_user("alice"), "node": cluster.as_node("n1"), "admin": cluster}
    return writers[request.param]


def allocations(cluster: Cluster) -> tuple[str | None, str | None]:
    """Allocations of the pending pod and of the other one."""
    one, other = (cluster.pods.get(TEAM, name).annotations.get(ALLOCATION) for name in (WAITS, GRANTED))
    return one, other


@pytest.mark.parametrize(
    ("writer", "attempt"),
    [
        *((who, attempt) for who in WRITERS for attempt in ALLOCATIONS.values()),
        *(("node", attempt) for attempt in BY_NODE.values()),
    ],
    ids=[*(f"{who}: {name}" for who in WRITERS for name in ALLOCATIONS), *(f"node: {name}" for name in BY_NODE)],
    indirect=["writer"],
)
def test_only_the_scheduler_writes_allocations(cluster: Cluster, writer: Cluster, attempt: Attempt) -> None:
    with pytest.raises(Refused) as refused:
        attempt(writer)
    assert refused.value.status == 403
    assert DENIED + "annotations that begin with alloc.partage.dev/" in refused.value.message
    assert allocations(cluster) == (None, OWNED[ALLOCATION])


@pytest.mark.parametrize("writer", WRITERS, indirect=True)
@pytest.mark.parametrize("attempt", IN_VAIN.values(), ids=IN_VAIN)
def test_no_other_part_of_a_pod_carries_an_allocation_in_or_out(
    cluster: Cluster, writer: Cluster, attempt: Attempt
) -> None:
    refusal = _refusal(writer, attempt)
    assert refusal is None or DENIED + "annotations that begin" in refusal
    assert allocations(cluster) == (None, OWNED[ALLOCATION])


def test_a_node_cannot_make_a_mirror_of_a_pod_with_an_allocation(cluster: Cluster) -> None:
    mirrored = a_pod("of-a-file", node="n1", annotations={"kubernetes.io/config.mirror": "1", **FORGED})
    node = cluster.nodes.get("n1")["metadata"]
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["uid"], "controller": True}
    mirrored["metadata"]["ownerReferences"] = [owner]
    mirrored["spec"]["automountServiceAccountToken"] = False
    with pytest.raises(Refused, match="written by partage-scheduler alone"):
        creating(mirrored)(cluster.as_node("n1"))
    del mirrored["metadata"]["annotations"][ALLOCATION]
    creating(mirrored)(cluster.as_node("n1"))


@pytest.mark.parametrize("writer", WRITERS, indirect=True)
@pytest.mark.parametrize("attempt", DEVICES.values(), ids=DEVICES)
def test_nobody_names_devices_past_allocations(writer: Cluster, attempt: Attempt) -> None:
    with pytest.raises(Refused) as refused:
        attempt(writer)
    assert refused.value.status == 403
    assert DENIED + "annotations that begin with cdi.k8s.io/ or nvidia.cdi.k8s.io/" in refused.value.message


@pytest.mark.parametrize("writer", WRITERS, indirect=True)
@pytest.mark.parametrize(("attempt", "why"), OWN_CHOICES.values(), ids=OWN_CHOICES)
def test_a_pod_that_asks_for_shares_chooses_neither_node_nor_cards(writer: Cluster, attempt: Attempt, why: str) -> None:
    with pytest.raises(Refused) as refused:
        attempt(writer)
    assert refused.value.status == 403
    assert f"{DENIED}a pod that asks for shares of cards {why}" in refused.value.message


_NOTE = {"metadata": {"annotations": {"theirs": "kept"}, "labels": {"theirs": "kept"}}}


@pytest.mark.parametrize(
    "write",
    [
        patching(path(GRANTED), _NOTE),
        patching(path(GRANTED), _NOTE, Patch.STRATEGIC),
        applying(None, GRANTED, {"theirs": "kept"}),
        putting(None, GRANTED, {**OWNED, "theirs": "kept"}),
        patching(path(GRANTED, "status"), {**_NOTE, "status": {"phase": "Running"}}),
        patching(
            path(GRANTED, "ephemeralcontainers"),
            {"spec": {"ephemeralContainers": [a_container("theirs")]}},
            Patch.STRATEGIC,
        ),
    ],
    ids=["merge", "strategic", "apply", "put", "status", "ephemeral container"],
)
def test_what_is_theirs_everybody_may_change_on_a_pod_with_an_allocation(cluster: Cluster, write: Attempt) -> None:
    write(cluster.as_user("alice"))
    assert allocations(cluster) == (None, OWNED[ALLOCATION])


def test_its_node_reports_on_it_and_its_owner_ends_it(cluster: Cluster) -> None:
    pod = cluster.pods.create(TEAM, a_pod("ends", scheduler="nobody", limits=SHARE))
    bind(cluster.as_account(SCHEDULER).api, pod, "n1", OWNED)
    status = {"status": {"phase": "Failed", "conditions": [{"type": "Ready", "status": "False"}]}}
    cluster.as_node("n1").api.patch(pod.path("status"), status, Patch.STRATEGIC)
    assert pod.refresh()["status"]["phase"] == "Failed"
    cluster.as_user("alice").api.delete(pod.path(), {"gracePeriodSeconds": 0})


def test_pods_that_ask_for_none_of_ours_are_left_alone(cluster: Cluster) -> None:
    alice = cluster.as_user("alice")
    alice.api.create(PODS.at(TEAM), a_pod("on-its-node", node="n1", limits={"cpu": "1", "nvidia.com/gpu": "1"}))
    ran = alice.kubectl.tried("create", "--dry-run=server", "-n", TEAM, "-f", "-", stdin=_seeing("void"))
    assert (ran.status, ran.err) == (0, "")
    alice.api.delete(path("on-its-node"), {"gracePeriodSeconds": 0})


def test_a_variable_that_names_cards_is_warned_of(cluster: Cluster) -> None:
    alice = cluster.as_user("alice")
    ran = alice.kubectl.tried("create", "--dry-run=server", "-n", TEAM, "-f", "-", stdin=_seeing("all"))
    assert ran.status == 0
    assert "Warning: " in ran.err
    assert "partage: on nodes with shared cards NVIDIA_VISIBLE_DEVICES becomes void" in ran.err


def test_a_crowd_of_annotations_is_no_trouble(cluster: Cluster) -> None:
    """A policy's cost per request is limited, and a request that costs more is denied.

    A pod has room for four times as many; the API server's own time for them grows with their square.
    """
    crowd = {f"n{number:05}": "" for number in range(10_000)}
    pod = cluster.pods.create(TEAM, a_pod("crowded", node="n1", annotations=crowd))
    cluster.as_node("n1").api.patch(pod.path("status"), {"status": {"phase": "Running"}}, Patch.STRATEGIC)


def test_an_operator_lifts_a_policy_and_puts_it_back(cluster: Cluster) -> None:
    """As the manifests' page says."""
    attempt, where = creating(a_pod("new", annotations=FORGED)), "validatingadmissionpolicybinding/partage-allocations"
    change = json.dumps({"spec": {"validationActions": ["Audit"]}})
    cluster.kubectl.run("patch", where, "--type=merge", f"--patch={change}")
    until("it is lifted", lambda: _refusal(cluster, attempt))
    (binding,) = [each for each in delivered(PODS_FILE) if each["metadata"]["name"] == "partage-allocations"][1:]
    cluster.api.apply(binding)
    until("it is in force again", lambda: None if _refusal(cluster, attempt) else "not yet")


def test_an_operator_trusts_a_namespace(cluster: Cluster) -> None:
    """As the manifests' page says."""
    attempt = creating(a_pod("new", annotations={"cdi.k8s.io/main": "nvidia.com/gpu=all"}))
    change = [{"op": "replace", "path": "/spec/variables/0/expression", "value": f"['{TEAM}']"}]
    cluster.api.patch(ADMISSION_POLICIES.at(name="partage-cdi"), change, Patch.JSON)
    until("the namespace is trusted", lambda: _refusal(cluster, attempt))
    policy = next(each for each in delivered(PODS_FILE) if each["metadata"]["name"] == "partage-cdi")
    cluster.api.apply(policy)
    until("it is not any more", lambda: None if _refusal(cluster, attempt) else "not yet")


def test_every_policy_is_bound(cluster: Cluster) -> None:
    names = {each["metadata"]["name"] for each in delivered(PODS_FILE)}
    assert names <= {each["spec"]["policyName"] for each in cluster.api.list(ADMISSION_BINDINGS.at())}


def _seeing(value: str) -> str:
    return json.dumps(a_pod("sees", env={"NVIDIA_VISIBLE_DEVICES": value}))


def _refusal(who: Cluster, attempt: Callable[[Cluster], object]) -> str | None:
    try:
        attempt(who)
    except Refused as refused:
        return refused.message
    return None


def _why_not_in_force(admin: Cluster) -> str | None:
    """The API server takes a moment to notice a policy. One of each kind is tried; all of them create pods."""
    of_cdi = next(way for name, way in DEVICES.items() if name.startswith("create"))
    attempts = {"allocations": ALLOCATIONS["create"], "cdi": of_cdi, "shares": OWN_CHOICES["its node"][0]}
    return next((f"{name} are open" for name, way in attempts.items() if _refusal(admin, way) is None), None)
