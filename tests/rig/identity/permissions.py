"""Permissions of a rig's identities, as manifests: those that we deliver, and the rig's own.

Our two daemons that call the API server have the permissions that we deliver: exactly those that they use, which is
tested both ways. `alice` has the built-in role `edit` in her team's namespace: an ordinary user, who can create pods
but not bind them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import msgspec

from rig.identity.people import KUBELET_CLIENT, TEAM

Manifest = dict[str, Any]
FOLDER: Final = Path(__file__).parents[3] / "manifests"
_BETWEEN_DOCUMENTS: Final = re.compile(r"^---$", re.MULTILINE)


def delivered(name: str) -> list[Manifest]:
    """The objects of a file, by its path below `manifests/`, in the file's order."""
    documents = _BETWEEN_DOCUMENTS.split((FOLDER / name).read_text(encoding="utf-8"))
    return [msgspec.yaml.decode(document, type=Manifest) for document in documents]


_RBAC: Final = "rbac.authorization.k8s.io"
SCHEDULER_FILES: Final = ("scheduler/rbac.yaml", "extender/rbac.yaml")
CLAIMS_FILES: Final = ("claims/admission.yaml", "claims/rbac.yaml")
"""Only in a cluster where our scheduler allocates claims."""
PODS_FILE: Final = "scheduler/admission.yaml"
ADVERTISER_FILES: Final = ("namespace.yaml", "admission.yaml", "rbac.yaml")
"""`manifests/advertiser` without the DaemonSet; its namespace is shared by all."""


def manifests(*, partage: bool = True, pod_admission: bool = True) -> list[Manifest]:
    """All manifests, in an order in which they can be applied."""
    files = (*(f"advertiser/{file}" for file in ADVERTISER_FILES), *SCHEDULER_FILES) if partage else ()
    return [
        *(delivered(PODS_FILE) if partage and pod_admission else ()),
        *(manifest for file in files for manifest in delivered(file)),
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}},
        _binding("ClusterRoleBinding", None, KUBELET_CLIENT.user, ("ClusterRole", "system:kubelet-api-admin"), _user()),
        _binding("RoleBinding", TEAM, TEAM, ("ClusterRole", "edit"), _group(TEAM)),
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
