"""A pod that reserves a card: it requests one from kubelet's device plugin, on a node that we choose.

kube-scheduler places it, so that it never takes a card which kube-scheduler is giving to another pod. It tolerates all
taints, since the waiting pods have passed those filters; it preempts no pod, and its priority protects it from
preemption.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from partage_plugins.api import NodeName, PodUid
from partage_plugins.api.gpu import RESERVATIONS
from partage_scheduler.objects import ApiPod

RESOURCE: Final = "nvidia.com/gpu"
"""The device plugin's resource, for one card."""
PRIORITY: Final = "partage-card"
"""The PriorityClass in our manifests."""
_LABELS: Final = {"app.kubernetes.io/name": "partage-card", "app.kubernetes.io/part-of": "partage"}
_BY_NAME: Final = "metadata.name"


class Reservation(Struct, frozen=True, kw_only=True):
    name: str
    """`namespace/name`, as inventories have it; never reused."""
    uid: PodUid
    node: NodeName
    """The node it is on or selects; empty if it selects none."""
    is_bound: bool
    is_leaving: bool
    has_ended: bool

    @classmethod
    def of(cls, pod: ApiPod) -> Reservation:
        return cls(
            name=f"{pod.namespace}/{pod.name}",
            uid=pod.uid,
            node=NodeName(pod.node or _wanted(pod)),
            is_bound=bool(pod.node),
            is_leaving=pod.is_going,
            has_ended=pod.is_terminal,
        )


def _wanted(pod: ApiPod) -> str:
    affinity = pod.spec.affinity
    required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
    for term in required.node_selector_terms if required else ():
        for field in term.match_fields:
            if field.key == _BY_NAME and field.values:
                return field.values[0]
    return ""


def body_of(name: str, node: NodeName, *, image: str) -> dict[str, Any]:
    """The manifest sent to the API server."""
    term = {"matchFields": [{"key": _BY_NAME, "operator": "In", "values": [node]}]}
    container = {
        "name": "card",
        "image": image,
        "resources": {"limits": {RESOURCE: "1"}, "requests": {"cpu": "1m", "memory": "8Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": RESERVATIONS, "labels": _LABELS},
        "spec": {
            "schedulerName": "default-scheduler",
            "priorityClassName": PRIORITY,
            "affinity": {
                "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
            },
            "tolerations": [{"operator": "Exists"}],
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": 65532,
                "runAsGroup": 65532,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [container],
        },
    }
