"""Rights of a stolen token of the scheduler or of the SharePod controller, and those that their work needs.

Here RBAC gives both every right over pods, Leases and SharePods, so only the policies can deny anything.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager

import msgspec
import pytest

from partage_plugins.api import NodeName
from partage_plugins.api.gpu import RESERVATIONS
from partage_plugins.api.keys import ALLOCATION, KEYS, RESIZED, RESIZED_PODS, SIGNATURE
from partage_scheduler.reservation.pods import body_of
from partage_scheduler.sharepods.manifest import pod_of
from partage_scheduler.sharepods.objects import OURS, SharePod
from real.permissions.objects import a_lease
from rig.client.api import Patch
from rig.client.binding import bind, binding
from rig.client.cluster import Cluster
from rig.client.manifests import a_container, a_pod
from rig.client.resources import LEASES, PODS, Json, Objects
from rig.client.rights import every_right
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, SCHEDULER, SHAREPODS, TEAM, ServiceAccount
from rig.identity.permissions import FOLDER
from support.sharepods import GPUID, SHAREPODS_PATH, a_sharepod, installed, uninstalled

pytestmark = pytest.mark.slow

Attempt = Callable[[Cluster], object]
DRY = {"dryRun": "All"}
LEASE = LEASES.at(OUR_NAMESPACE, "a-node")
OF_ROLLOUT = LEASES.at(OUR_NAMESPACE, "partage-another")
WAITS, RUNS, VITAL, GRANTED = "waits", "runs", "vital", "granted"
SHARE = "share"
RESERVATION_FILES = str(FOLDER / "reservations")
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no card"}
PREEMPTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler", "message": "for another"}


def path(name: str, sub: str | None = None) -> str:
    return PODS.at(TEAM, name, sub)


def dry(where: str) -> str:
    return f"{where}?dryRun=All"


def patching(where: str, change: Json | Objects, kind: Patch = Patch.MERGE) -> Attempt:
    return lambda who: who.api.patch(dry(where), change, kind)


def creating(where: str, body: Json) -> Attempt:
    return lambda who: who.api.create(where, body, DRY)


def deleting(where: str) -> Attempt:
    return lambda who: who.api.delete(where, {"dryRun": ["All"]})


def saying(name: str, **status: object) -> Attempt:
    return patching(path(name, "status"), {"status": status}, Patch.STRATEGIC)


def evicting(name: str, **options: object) -> Attempt:
    body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": TEAM}}
    return creating(path(name, "eviction"), {**body, "deleteOptions": {"dryRun": ["All"], **options}})


def running(name: str) -> Attempt:
    return lambda who: who.api.text(path(name, "exec"), {"command": "id", "stdout": "true"})


def a_reservation(**changed: object) -> Json:
    body = body_of("card-1", NodeName("n1"), image="pause")
    return {**body, "spec": {**body["spec"], **changed}}


OF_SCHEDULER_FORBIDDEN: Mapping[str, Attempt] = {
    "create a pod": creating(PODS.at(TEAM), a_pod("new")),
    "create a pod of the system": creating(PODS.at("kube-system"), a_pod("new")),
    "create another pod among reservations": creating(PODS.at(RESERVATIONS), a_reservation(priorityClassName="")),
    "create a pod with a token among reservations": creating(
        PODS.at(RESERVATIONS), a_reservation(automountServiceAccountToken=True)
    ),
    "change a pod": patching(path(WAITS), {"metadata": {"labels": {"a": "b"}}}),
    "label a pod that it resizes": patching(path(GRANTED), {"metadata": {"labels": {"a": "b"}}}),
    "annotate a pod that it resizes": patching(path(GRANTED), {"metadata": {"annotations": {"a": "b"}}}),
    "hold a pod that it resizes": patching(path(GRANTED), {"metadata": {"finalizers": ["example.org/held"]}}),
    "change its image": patching(
        path(RUNS), {"spec": {"containers": [{"name": "main", "image": "x"}]}}, Patch.STRATEGIC
    ),
    "debug a pod": patching(
        path(RUNS, "ephemeralcontainers"), {"spec": {"ephemeralContainers": [a_container("debug")]}}, Patch.STRATEGIC
    ),
    "run in a pod": running(RUNS),
    "label a pod by its status": patching(path(RUNS, "status"), {"metadata": {"labels": {"a": "b"}}}),
    "annotate a pod by its status": patching(path(WAITS, "status"), {"metadata": {"annotations": {"a": "b"}}}),
    "take a label by its status": patching(path(RUNS, "status"), {"metadata": {"labels": {"app": None}}}),
    "hold a pod by its status": patching(path(RUNS, "status"), {"metadata": {"finalizers": ["example.org/held"]}}),
    "end a pod by its status": saying(RUNS, phase="Failed"),
    "give a pod an address": saying(RUNS, podIP="192.0.2.7", podIPs=[{"ip": "192.0.2.7"}]),
    "say that a pod is ready": saying(RUNS, conditions=[{"type": "Ready", "status": "True"}]),
    "say that a pod that waits has a node": saying(WAITS, conditions=[{"type": "PodScheduled", "status": "True"}]),
    "say that a pod on a node waits": saying(RUNS, conditions=[UNSCHEDULABLE]),
    "say that a pod leaves for another reason": saying(
        RUNS, conditions=[{**PREEMPTED, "reason": "EvictionByEvictionAPI"}]
    ),
    "take a condition away": saying(RUNS, conditions=[{"$patch": "delete", "type": "PodScheduled"}]),
    "delete a pod that waits": deleting(path(WAITS)),
    "delete a pod that no other may replace": deleting(path(VITAL)),
    "delete all pods": deleting(PODS.at(TEAM)),
    "evict a pod at once": evicting(RUNS, gracePeriodSeconds=0),
    "beat for a node": patching(LEASE, {"spec": {"renewTime": "2030-01-01T00:00:00.000000Z"}}),
    "say which keys a node has": patching(LEASE, {"metadata": {"annotations": {KEYS: "", RESIZED_PODS: "{}"}}}),
    "take a node's lease": deleting(LEASE),
    "name pods on the lease of another daemon": patching(OF_ROLLOUT, {"metadata": {"annotations": {RESIZED_PODS: ""}}}),
}
OF_SCHEDULER: Mapping[str, Attempt] = {
    "say why a pod waits": saying(WAITS, conditions=[UNSCHEDULABLE]),
    "nominate a node": saying(WAITS, nominatedNodeName="n1"),
    "nominate none": saying(WAITS, nominatedNodeName=None),
    "have a pod tried again": saying(
        WAITS,
        conditions=[{"type": "alloc.partage.dev/Room", "status": "True", "lastProbeTime": "2030-01-01T00:00:00Z"}],
    ),
    "say that a pod leaves for another": saying(RUNS, conditions=[PREEMPTED]),
    "name pods that it resized": patching(LEASE, {"metadata": {"annotations": {RESIZED_PODS: "{}"}}}),
    "resize a pod": patching(path(GRANTED), {"metadata": {"annotations": {ALLOCATION: "new", SIGNATURE: "new"}}}),
    "say what became of a resize": saying(RUNS, conditions=[{"type": RESIZED, "status": "True", "reason": "Granted"}]),
    "delete a pod for another": deleting(path(RUNS)),
    "evict a pod": evicting(RUNS),
    "reserve a card": creating(PODS.at(RESERVATIONS), a_reservation()),
}


def a_pod_of(share: str = SHARE, **changed: object) -> Json:
    """A pod as the controller makes it."""
    said = a_sharepod(share, "0.5")
    meta = {**said["metadata"], "namespace": TEAM, "uid": "0f5c"}
    pod = pod_of(msgspec.convert({**said, "metadata": meta}, SharePod), scheduler="partage-scheduler")
    return {**pod, "metadata": {**pod["metadata"], **changed}}


def owned_by(**changed: object) -> Json:
    (owner,) = a_pod_of()["metadata"]["ownerReferences"]
    return a_pod_of(ownerReferences=[{**owner, **changed}])


def naming_a_node() -> Json:
    pod = a_pod_of()
    return {**pod, "spec": {**pod["spec"], "nodeName": "n1"}}


def a_second_owner() -> Json:
    (owner,) = a_pod_of()["metadata"]["ownerReferences"]
    other = {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "1"}
    return a_pod_of(ownerReferences=[owner, other])


_SHARE = SHAREPODS_PATH.at(TEAM, SHARE)
_IMAGE = [{"op": "replace", "path": "/spec/containers/0/image", "value": "another"}]
OF_SHAREPODS_FORBIDDEN: Mapping[str, Attempt] = {
    "create a pod of nobody": creating(PODS.at(TEAM), a_pod("new")),
    "create a pod of the system": creating(PODS.at("kube-system"), a_pod("new")),
    "create a pod without the label": creating(PODS.at(TEAM), a_pod_of(labels={})),
    "create a pod of another SharePod": creating(PODS.at(TEAM), owned_by(name="another")),
    "create a pod of another kind": creating(PODS.at(TEAM), owned_by(apiVersion="apps/v1", kind="ReplicaSet")),
    "create a pod that nobody controls": creating(PODS.at(TEAM), owned_by(controller=False)),
    "create a pod that outlives its SharePod": creating(PODS.at(TEAM), a_second_owner()),
    "create a pod on a node": creating(PODS.at(TEAM), naming_a_node()),
    "change a pod": patching(path(WAITS), {"metadata": {"labels": {OURS: "true"}}}),
    "write a pod's status": saying(RUNS, phase="Failed"),
    "delete a pod": deleting(path(RUNS)),
    "evict a pod": evicting(RUNS),
    "run in a pod": running(RUNS),
    "bind a pod": lambda who: who.api.create(path(WAITS, "binding"), binding(who.pods.get(TEAM, WAITS), "n1", {}), DRY),
    "create a SharePod": creating(SHAREPODS_PATH.at(TEAM), a_sharepod("new", "0.5")),
    "delete a SharePod": deleting(_SHARE),
    "change what a pod is made of": patching(_SHARE, _IMAGE, Patch.JSON),
    "change what a SharePod asks for": patching(_SHARE, {"metadata": {"annotations": {"kubeshare/gpu_request": "1"}}}),
    "label a SharePod": patching(_SHARE, {"metadata": {"labels": {"a": "b"}}}),
    "hold a SharePod": patching(_SHARE, {"metadata": {"finalizers": ["example.org/held"]}}),
    "move a SharePod": patching(SHAREPODS_PATH.at(TEAM, "placed"), {"spec": {"nodeName": "n2"}}),
    "say that a SharePod has another card": patching(
        SHAREPODS_PATH.at(TEAM, "placed"), {"metadata": {"annotations": {GPUID: "zzzzz"}}}
    ),
}
OF_SHAREPODS: Mapping[str, Attempt] = {
    "create the pod of a SharePod": creating(PODS.at(TEAM), a_pod_of()),
    "say where a SharePod lies": patching(
        _SHARE, {"metadata": {"annotations": {GPUID: "abcde"}}, "spec": {"nodeName": "n1"}}
    ),
    "write the status of a SharePod": patching(f"{_SHARE}/status", {"status": {"PodStatus": {"phase": "Running"}}}),
}


@pytest.fixture(scope="module", autouse=True)
def rights(admin: Cluster) -> Iterator[None]:
    installed(admin)
    admin.kubectl.run("apply", "-k", RESERVATION_FILES)
    parts = [f"pods/{part}" for part in ("status", "ephemeralcontainers", "resize", "binding", "eviction", "exec")]
    rules = [
        {"apiGroups": [""], "resources": ["pods", *parts], "verbs": ["*"]},
        {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        {"apiGroups": ["kubeshare.nthu"], "resources": ["sharepods", "sharepods/status"], "verbs": ["*"]},
    ]
    with every_right(admin, "stolen-tokens", rules, SCHEDULER, SHAREPODS), _objects(admin):
        until("the policies are in force", lambda: _why_not_in_force(admin))
        yield
    uninstalled(admin)
    admin.delete_namespaces(RESERVATIONS)
    admin.kubectl.run("delete", "-k", RESERVATION_FILES, "--ignore-not-found")


@contextmanager
def _objects(admin: Cluster) -> Generator[None]:
    """Pods and SharePods that no test changes."""
    for pod in (a_pod(WAITS, scheduler="nobody"), a_pod(RUNS, node="n1"), _vital()):
        admin.api.create(PODS.at(TEAM), pod)
    admin.api.create(PODS.at(TEAM), a_pod(GRANTED, scheduler="nobody"))
    given = binding(admin.pods.get(TEAM, GRANTED), "n1", {ALLOCATION: "old", SIGNATURE: "old"})
    admin.as_account(SCHEDULER).api.create(path(GRANTED, "binding"), given)
    runs = {"phase": "Running", "conditions": [{"type": "PodScheduled", "status": "True"}]}
    admin.api.patch(path(RUNS, "status"), {"status": runs}, Patch.STRATEGIC)
    for lease in (LEASE, OF_ROLLOUT):
        admin.api.create(LEASES.at(OUR_NAMESPACE), a_lease(lease.rpartition("/")[2]))
    placed = a_sharepod("placed", "0.5", annotations={GPUID: "abcde"}, nodeName="n1")
    for share in (a_sharepod(SHARE, "0.5"), placed):
        admin.api.create(SHAREPODS_PATH.at(TEAM), share)
    yield
    for lease in (LEASE, OF_ROLLOUT):
        admin.api.delete(lease)
    for name in (WAITS, RUNS, VITAL, GRANTED):
        admin.api.delete(path(name), {"gracePeriodSeconds": 0})


@pytest.mark.parametrize(
    ("account", "attempt"),
    [
        *((SCHEDULER, attempt) for attempt in OF_SCHEDULER_FORBIDDEN.values()),
        *((SHAREPODS, attempt) for attempt in OF_SHAREPODS_FORBIDDEN.values()),
    ],
    ids=[
        *(f"scheduler: {name}" for name in OF_SCHEDULER_FORBIDDEN),
        *(f"sharepods: {name}" for name in OF_SHAREPODS_FORBIDDEN),
    ],
)
def test_a_stolen_token_may_not(cluster: Cluster, account: ServiceAccount, attempt: Attempt) -> None:
    with pytest.raises(Refused) as refused:
        attempt(cluster.as_account(account))
    assert (refused.value.status, refused.value.reason) == (403, "Forbidden")
    assert "denied request: partage: " in refused.value.message


@pytest.mark.parametrize(
    ("account", "attempt"),
    [
        *((SCHEDULER, attempt) for attempt in OF_SCHEDULER.values()),
        *((SHAREPODS, attempt) for attempt in OF_SHAREPODS.values()),
    ],
    ids=[*(f"scheduler: {name}" for name in OF_SCHEDULER), *(f"sharepods: {name}" for name in OF_SHAREPODS)],
)
def test_what_the_daemons_do_is_allowed(cluster: Cluster, account: ServiceAccount, attempt: Attempt) -> None:
    attempt(cluster.as_account(account))


def test_the_scheduler_binds_as_before(cluster: Cluster) -> None:
    pod = cluster.pods.create(TEAM, a_pod("bound", scheduler="nobody"))
    bind(cluster.as_account(SCHEDULER).api, pod, "n1", {})
    assert pod.refresh()["spec"]["nodeName"] == "n1"


def test_nobody_else_is_held_by_these_policies(cluster: Cluster) -> None:
    attempts = {**OF_SCHEDULER_FORBIDDEN, **OF_SHAREPODS_FORBIDDEN}
    denied = [name for name, attempt in attempts.items() if _is_denied(cluster, attempt)]
    assert denied == []


def _is_denied(who: Cluster, attempt: Attempt) -> bool:
    """Whether one of these policies denies it; other errors do not count."""
    try:
        attempt(who)
    except Refused as refused:
        return "partage: the scheduler" in refused.message or "partage: the controller" in refused.message
    return False


def _vital() -> Json:
    return a_pod(VITAL, node="n1", spec={"priorityClassName": "system-node-critical"})


def _why_not_in_force(admin: Cluster) -> str | None:
    """The API server takes a moment to notice a policy."""
    attempts = {
        "leases": (SCHEDULER, OF_SCHEDULER_FORBIDDEN["beat for a node"]),
        "pods, for the scheduler": (SCHEDULER, OF_SCHEDULER_FORBIDDEN["change a pod"]),
        "pods, for the controller": (SHAREPODS, OF_SHAREPODS_FORBIDDEN["change a pod"]),
        "SharePods": (SHAREPODS, OF_SHAREPODS_FORBIDDEN["label a SharePod"]),
    }
    for what, (account, attempt) in attempts.items():
        if not _is_denied(admin.as_account(account), attempt):
            return f"{what} are open"
    return None
