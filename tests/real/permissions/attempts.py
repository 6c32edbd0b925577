"""Requests that n1's advertiser must be denied, as a table: each line is one request.

`WRITES` are on the kinds of objects that it may write, so that only the policies can deny them; `BEYOND` are on all
others, which RBAC alone refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from partage_plugins.api.keys import ALLOCATION, INVENTORY
from real.permissions.objects import a_lease, an_event
from rig.client.api import Patch
from rig.client.cluster import Cluster
from rig.client.manifests import a_pod
from rig.client.resources import (
    ADMISSION_BINDINGS,
    CLUSTER_ROLE_BINDINGS,
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    Json,
    Objects,
)
from rig.identity.people import ADVERTISER, OUR_NAMESPACE, TEAM
from support.objects import node_body

Attempt = Callable[[Cluster], object]
N1, N2 = NODES.at(name="n1"), NODES.at(name="n2")
EVENTS_NEWER = "/apis/events.k8s.io/v1/namespaces/default/events"


def changing(path: str, change: Json | Objects, kind: Patch = Patch.MERGE) -> Attempt:
    return lambda us: us.api.patch(path, change, kind)


def annotating(node: str, key: str, value: str | None = "{}") -> Attempt:
    return lambda us: us.nodes.annotate(node, {key: value})


def applying(node: str, metadata: Json) -> Attempt:
    change = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, **metadata}}
    return changing(NODES.at(name=node), change, Patch.APPLY)


def adding(path: str, value: object) -> Objects:
    return [{"op": "add", "path": path, "value": value}]


def replacing(node: str, **metadata: object) -> Attempt:
    def attempt(us: Cluster) -> None:
        now = us.nodes.get(node)
        us.api.replace(NODES.at(name=node), {**now, "metadata": {**now["metadata"], **metadata}})

    return attempt


def creating(path: str, body: Json) -> Attempt:
    return lambda us: us.api.create(path, body)


def deleting(path: str) -> Attempt:
    return lambda us: us.api.delete(path)


def reporting(**changed: object) -> Attempt:
    return creating(EVENTS.at("default"), an_event("n1", **changed))


_POD = {"kind": "Pod", "namespace": "default", "name": "web"}
_N2 = {"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "n2"}
_NEWER_ABOUT_N2 = {
    "apiVersion": "events.k8s.io/v1",
    "kind": "Event",
    "metadata": {"name": "n2.newer"},
    "regarding": _N2,
    "eventTime": "2030-01-01T00:00:00.000000Z",
    "reason": "CardLost",
    "action": "Watching",
    "type": "Warning",
    "reportingController": "partage-advertiser",
    "reportingInstance": "n1",
}

_NODES: Mapping[str, Attempt] = {
    "annotate another node": annotating("n2", INVENTORY),
    "annotate another node, strategic": changing(N2, {"metadata": {"annotations": {INVENTORY: ""}}}, Patch.STRATEGIC),
    "annotate another node, json": changing(N2, adding("/metadata/annotations/partage.dev~1inventory", ""), Patch.JSON),
    "annotate another node, apply": applying("n2", {"annotations": {INVENTORY: ""}}),
    "annotate another node, put": replacing("n2", annotations={"theirs": "kept", INVENTORY: "{}"}),
    "annotate its node otherwise": annotating("n1", "partage.dev/other"),
    "annotate its node with an allocation": annotating("n1", ALLOCATION),
    "change another's annotation": annotating("n1", "theirs", "changed"),
    "remove another's annotation": annotating("n1", "theirs", None),
    "remove another's annotations": changing(N1, {"metadata": {"annotations": None}}),
    "annotate its node otherwise, apply": applying("n1", {"annotations": {"another": "x"}}),
    "annotate its node otherwise, put": replacing("n1", annotations={INVENTORY: "{}", "another": "x"}),
    "label its node": changing(N1, {"metadata": {"labels": {"nvidia.com/gpu-driver-upgrade-state": "done"}}}),
    "label its node, strategic": changing(N1, {"metadata": {"labels": {"a": "b"}}}, Patch.STRATEGIC),
    "label its node, json": changing(N1, adding("/metadata/labels/a", "b"), Patch.JSON),
    "label its node, apply": applying("n1", {"labels": {"a": "b"}}),
    "label its node, put": replacing("n1", labels={"a": "b"}),
    "label and inventory at once": changing(N1, {"metadata": {"labels": {"a": "b"}, "annotations": {INVENTORY: ""}}}),
    "remove its node's labels": changing(N1, {"metadata": {"labels": None}}),
    "remove its node's taints": changing(N1, {"spec": {"taints": None}}),
    "taint its node": changing(N1, {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}}),
    "cordon its node": changing(N1, {"spec": {"unschedulable": True}}),
    "say who provides its node": changing(N1, {"spec": {"providerID": "somewhere://else"}}),
    "hold its node with a finalizer": changing(N1, {"metadata": {"finalizers": ["partage.dev/held"]}}),
    "give its node an owner": changing(
        N1,
        {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": "1"}]}},
    ),
    "add to its node's capacity": changing(f"{N1}/status", {"status": {"capacity": {"partage.dev/gpus": "8"}}}),
    "write its node's status, apply": changing(
        f"{N1}/status",
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": {"nodeInfo": {}}},
        Patch.APPLY,
    ),
    "annotate its node by its status": changing(f"{N1}/status", {"metadata": {"annotations": {INVENTORY: "{}"}}}),
    "reach into its node's kubelet": lambda us: us.api.text(f"{N1}/proxy/pods"),
    "delete its node": deleting(N1),
    "delete all nodes": deleting(NODES.at()),
    "create a node": creating(NODES.at(), node_body("n3")),
    "create a node, apply": applying("n3", {"annotations": {INVENTORY: "{}"}}),
}

_LEASES: Mapping[str, Attempt] = {
    "write another node's lease": creating(LEASES.at(OUR_NAMESPACE), a_lease("n2", holder="n1")),
    "write a lease without a name": creating(
        LEASES.at(OUR_NAMESPACE), {**a_lease("", holder="n1"), "metadata": {"generateName": "n1"}}
    ),
    "hold its lease as another": creating(LEASES.at(OUR_NAMESPACE), a_lease("n1", holder="n2")),
    "hold the scheduler's lease": creating(LEASES.at(OUR_NAMESPACE), a_lease("partage-scheduler", holder="n1")),
    "delete another's lease": deleting(LEASES.at(OUR_NAMESPACE, "of-another")),
    "delete all leases": deleting(LEASES.at(OUR_NAMESPACE)),
    "write kubelet's lease": creating(LEASES.at("kube-node-lease"), a_lease("n1")),
    "write its lease elsewhere": creating(LEASES.at("default"), a_lease("n1")),
}

_EVENTS: Mapping[str, Attempt] = {
    "report on another node": reporting(involvedObject=_N2),
    "report on a pod": reporting(involvedObject=_POD),
    "report on a pod of its node's name": reporting(involvedObject={**_POD, "name": "n1"}),
    "report as kubelet": reporting(source={"component": "kubelet", "host": "n1"}),
    "report as kubelet, newer": reporting(reportingComponent="kubelet"),
    "report as another node": reporting(reportingInstance="n2"),
    "report as another host": reporting(source={"component": "partage-advertiser", "host": "n2"}),
    "report as nobody": reporting(reportingComponent="", source={}),
    "report on another node, newer": creating(EVENTS_NEWER, _NEWER_ABOUT_N2),
    "take an event over": changing(
        EVENTS.at("default", "of-kubelet"),
        {"reportingComponent": "partage-advertiser", "reportingInstance": "n1", "source": None},
    ),
    "delete an event": deleting(EVENTS.at("default", "of-kubelet")),
    "delete its own event": deleting(EVENTS.at("default", "its-own")),
    "delete all events": deleting(EVENTS.at("default")),
}

WRITES: Mapping[str, Attempt] = {**_NODES, **_LEASES, **_EVENTS}

_ITSELF = SERVICE_ACCOUNTS.at(OUR_NAMESPACE, ADVERTISER.name)
_MORE = {
    "metadata": {"name": "more"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "namespace": ADVERTISER.namespace, "name": ADVERTISER.name}],
}
_BINDING = {"metadata": {"name": "web"}, "target": {"kind": "Node", "name": "n1"}}

BEYOND: Mapping[str, Attempt] = {
    "annotate a pod": changing(PODS.at(TEAM, "web"), {"metadata": {"annotations": {ALLOCATION: "forged"}}}),
    "bind a pod": creating(PODS.at(TEAM, "web", "binding"), _BINDING),
    "bind a pod, the older way": creating(f"/api/v1/namespaces/{TEAM}/bindings", _BINDING),
    "write a pod's status": changing(PODS.at(TEAM, "web", "status"), {"status": {"phase": "Failed"}}),
    "run in a pod": lambda us: us.api.text(PODS.at(TEAM, "web", "exec"), {"command": "id", "stdout": "true"}),
    "read a pod's log": lambda us: us.api.text(PODS.at(TEAM, "web", "log")),
    "delete a pod": deleting(PODS.at(TEAM, "web")),
    "evict a pod": creating(PODS.at(TEAM, "web", "eviction"), {"metadata": {"name": "web"}}),
    "make a pod as itself, on any node": creating(
        PODS.at(OUR_NAMESPACE), a_pod("as-us", node="n2", spec={"serviceAccountName": ADVERTISER.name})
    ),
    "list pods": lambda us: us.api.list(PODS.at()),
    "make itself a token for any node": creating(
        f"{_ITSELF}/token", {"spec": {"boundObjectRef": {"apiVersion": "v1", "kind": "Node", "name": "n2"}}}
    ),
    "read secrets": lambda us: us.api.list(SECRETS.at(OUR_NAMESPACE)),
    "write a config map": creating(CONFIG_MAPS.at(OUR_NAMESPACE), {"metadata": {"name": "partage-advertiser"}}),
    "read other leases": lambda us: us.api.list(LEASES.at("kube-system")),
    "give itself more": creating(CLUSTER_ROLE_BINDINGS.at(), _MORE),
    "lift the policy": deleting(ADMISSION_BINDINGS.at(name="partage-advertiser-nodes")),
}
