"""API paths of objects and collections. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

Json = dict[str, Any]
"""An object in the API server's JSON: there is no need to declare Kubernetes' types again."""
Objects = list[Json]


@dataclass(frozen=True)
class Resource:
    """A kind of objects, by group, version and plural name."""

    api_version: str
    plural: str
    namespaced: bool = True

    def at(self, namespace: str | None = None, name: str | None = None, sub: str | None = None) -> str:
        """The path of all objects, of a namespace's, of one object, or of a subresource."""
        root = "api" if "/" not in self.api_version else "apis"
        within = ["namespaces", namespace] if namespace is not None and self.namespaced else []
        return "/" + "/".join([root, self.api_version, *within, self.plural, *(part for part in (name, sub) if part)])


PODS: Final = Resource("v1", "pods")
NODES: Final = Resource("v1", "nodes", namespaced=False)
NAMESPACES: Final = Resource("v1", "namespaces", namespaced=False)
EVENTS: Final = Resource("v1", "events")
SECRETS: Final = Resource("v1", "secrets")
CONFIG_MAPS: Final = Resource("v1", "configmaps")
SERVICE_ACCOUNTS: Final = Resource("v1", "serviceaccounts")
JOBS: Final = Resource("batch/v1", "jobs")
RESOURCE_QUOTAS: Final = Resource("v1", "resourcequotas")
LIMIT_RANGES: Final = Resource("v1", "limitranges")
LEASES: Final = Resource("coordination.k8s.io/v1", "leases")
ROLES: Final = Resource("rbac.authorization.k8s.io/v1", "roles")
ROLE_BINDINGS: Final = Resource("rbac.authorization.k8s.io/v1", "rolebindings")
CLUSTER_ROLES: Final = Resource("rbac.authorization.k8s.io/v1", "clusterroles", namespaced=False)
CLUSTER_ROLE_BINDINGS: Final = Resource("rbac.authorization.k8s.io/v1", "clusterrolebindings", namespaced=False)
_ADMISSION: Final = "admissionregistration.k8s.io/v1"
ADMISSION_POLICIES: Final = Resource(_ADMISSION, "validatingadmissionpolicies", namespaced=False)
ADMISSION_BINDINGS: Final = Resource(_ADMISSION, "validatingadmissionpolicybindings", namespaced=False)

PRIORITY_CLASSES: Final = Resource("scheduling.k8s.io/v1", "priorityclasses", namespaced=False)
DEVICE_CLASSES: Final = Resource("resource.k8s.io/v1", "deviceclasses", namespaced=False)
RESOURCE_CLAIMS: Final = Resource("resource.k8s.io/v1", "resourceclaims")
RESOURCE_CLAIM_TEMPLATES: Final = Resource("resource.k8s.io/v1", "resourceclaimtemplates")
RESOURCE_SLICES: Final = Resource("resource.k8s.io/v1", "resourceslices", namespaced=False)

_BY_KIND: Final = {
    "Pod": PODS,
    "Node": NODES,
    "Namespace": NAMESPACES,
    "Secret": SECRETS,
    "ConfigMap": CONFIG_MAPS,
    "ServiceAccount": SERVICE_ACCOUNTS,
    "Job": JOBS,
    "Lease": LEASES,
    "Role": ROLES,
    "RoleBinding": ROLE_BINDINGS,
    "ClusterRole": CLUSTER_ROLES,
    "ClusterRoleBinding": CLUSTER_ROLE_BINDINGS,
    "PriorityClass": PRIORITY_CLASSES,
    "ValidatingAdmissionPolicy": ADMISSION_POLICIES,
    "ValidatingAdmissionPolicyBinding": ADMISSION_BINDINGS,
}


def path_of(manifest: Json) -> str:
    """The path of this object. Use kubectl for manifests of kinds that are not listed here."""
    resource = _BY_KIND[manifest["kind"]]
    return resource.at(manifest["metadata"].get("namespace"), manifest["metadata"]["name"])
