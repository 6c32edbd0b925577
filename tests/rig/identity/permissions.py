"""What each identity of a rig may do, as manifests.

The two daemons of ours that talk to the API server have what they use and nothing else; what that means is tested both
ways. The advertiser's manifests are those that we deliver; the scheduler's are here until we deliver them. `alice` has
the built-in role `edit` in her team's namespace: an ordinary user, who can make pods and cannot bind.
"""

from __future__ import annotations

from typing import Final

from rig.identity.delivered import Manifest, delivered
from rig.identity.people import KUBELET_CLIENT, SCHEDULER, TEAM, ServiceAccount

_RBAC: Final = "rbac.authorization.k8s.io"
_READ: Final = ["get", "list", "watch"]
_LEASES: Final = {
    "apiGroups": ["coordination.k8s.io"],
    "resources": ["leases"],
    "verbs": [*_READ, "create", "update"],  # nodes' heartbeats are read, and the lead is taken
}

SCHEDULER_RULES: Final = [
    # Unlike kube-scheduler it never deletes a pod: it leaves preemption to kube-scheduler.
    {"apiGroups": [""], "resources": ["pods"], "verbs": _READ},
    {"apiGroups": [""], "resources": ["pods/binding"], "verbs": ["create"]},  # with the allocation's annotations
    {"apiGroups": [""], "resources": ["pods/status"], "verbs": ["patch"]},  # why a pod is not scheduled
    {"apiGroups": [""], "resources": ["nodes", "namespaces"], "verbs": _READ},
    {"apiGroups": [""], "resources": ["persistentvolumes", "persistentvolumeclaims"], "verbs": _READ},
    {"apiGroups": ["storage.k8s.io"], "resources": ["storageclasses", "csinodes"], "verbs": _READ},
    {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
]
ADVERTISER_FILES: Final = ("namespace.yaml", "admission.yaml", "rbac.yaml")
"""All of `manifests/advertiser` but what runs it; the namespace is everybody's."""


def manifests() -> list[Manifest]:
    """All of it, in an order in which it can be applied."""
    return [
        *(manifest for file in ADVERTISER_FILES for manifest in delivered(f"advertiser/{file}")),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}},
        *_for_account(SCHEDULER, SCHEDULER_RULES),
        _binding("ClusterRoleBinding", None, KUBELET_CLIENT.user, ("ClusterRole", "system:kubelet-api-admin"), _user()),
        _binding("RoleBinding", TEAM, TEAM, ("ClusterRole", "edit"), _group(TEAM)),
    ]


def _for_account(account: ServiceAccount, rules: list[Manifest]) -> list[Manifest]:
    """The account, what it may do everywhere, and its leases in its own namespace."""
    metadata = {"namespace": account.namespace, "name": account.name}
    subject = {"kind": "ServiceAccount", **metadata}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": account.name}, "rules": rules},
        {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": [_LEASES]},
        _binding("ClusterRoleBinding", None, account.name, ("ClusterRole", account.name), subject),
        _binding("RoleBinding", account.namespace, account.name, ("Role", account.name), subject),
    ]


def _binding(kind: str, namespace: str | None, name: str, role: tuple[str, str], subject: Manifest) -> Manifest:
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": kind,
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "roleRef": {"apiGroup": _RBAC, "kind": role[0], "name": role[1]},
        "subjects": [subject],
    }


def _user() -> Manifest:
    return {"apiGroup": _RBAC, "kind": "User", "name": KUBELET_CLIENT.user}


def _group(name: str) -> Manifest:
    return {"apiGroup": _RBAC, "kind": "Group", "name": name}
