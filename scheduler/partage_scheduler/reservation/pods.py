"""A pod that reserves a card: an ordinary pod that asks kubelet's device plugin for one, on a node that we choose.

kube-scheduler places it, so that it never takes a card which kube-scheduler gives to another at the same time. It may
be on nodes with any taint, since the pods that wait have passed them; it sends no other away and none sends it away.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from partage_plugins.vocabulary import NodeName, PodUid
from partage_plugins.vocabulary.gpu import RESERVATIONS
from partage_scheduler.objects import ApiPod

RESOURCE: Final = "nvidia.com/gpu"
"""The device plugin's, for one card."""
PRIORITY: Final = "partage-card"
"""Of the class that our manifests bring."""
_LABELS: Final = {"app.kubernetes.io/name": "partage-card", "app.kubernetes.io/part-of": "partage"}
_BY_NAME: Final = "metadata.name"


class Reservation(Struct, frozen=True, kw_only=True):
    name: str
    """`namespace/name`, as inventories have it; never used again."""
    uid: PodUid
    node: NodeName
    """Where it is, or is to be; empty where it is not one of ours."""
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
    """What the API server is asked to create."""
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
