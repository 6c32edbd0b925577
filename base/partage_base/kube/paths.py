"""URL paths of the objects that we read and write. Pure.

Names come from settings, the environment and other people's objects: each is validated, so that none leads to another
object than the intended one.
"""

from __future__ import annotations

import re
from typing import Final

from partage_base.kube.errors import BadName

NOT_ENDED: Final = "status.phase!=Succeeded,status.phase!=Failed"
"""The field selector of pods that have not ended."""

_LONGEST: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def node_path(name: str) -> str:
    return f"{nodes_path()}/{_checked('node', name)}"


def nodes_path() -> str:
    return "/api/v1/nodes"


def lease_path(namespace: str, name: str) -> str:
    return f"{leases_path(namespace)}/{_checked('lease', name)}"


def leases_path(namespace: str) -> str:
    """All Leases of a namespace."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{_checked('namespace', namespace)}/leases"


def endpoint_slice_path(namespace: str, name: str) -> str:
    """The endpoints of a Service."""
    checked = _checked("namespace", namespace), _checked("endpoint slice", name)
    return "/apis/discovery.k8s.io/v1/namespaces/{}/endpointslices/{}".format(*checked)


def pod_path(namespace: str, name: str) -> str:
    return f"{pods_path(namespace)}/{_checked('pod', name)}"


def pods_path(namespace: str = "") -> str:
    """All pods of a namespace, or of all namespaces."""
    return _in_namespace(namespace, "pods")


def pod_status_path(namespace: str, name: str) -> str:
    return f"{pod_path(namespace, name)}/status"


def pod_page_path(namespace: str, name: str, page: str) -> str:
    """A page on the first port that a pod names, through the API server's proxy."""
    return f"{pod_path(namespace, name)}/proxy/{page.removeprefix('/')}"


def pod_log_path(namespace: str, name: str, container: str, *, lines: int, most_bytes: int) -> str:
    """The end of a container's latest log."""
    which = f"container={_checked('container', container)}&tailLines={lines}&limitBytes={most_bytes}"
    return f"{pod_path(namespace, name)}/log?{which}"


def binding_path(namespace: str, name: str) -> str:
    """The subresource that binds a pod to a node."""
    return f"{pod_path(namespace, name)}/binding"


def eviction_path(namespace: str, name: str) -> str:
    """The subresource that evicts a pod."""
    return f"{pod_path(namespace, name)}/eviction"


def events_path(namespace: str = "") -> str:
    """All events of a namespace, or of all namespaces; events about nodes are in `default`."""
    return _in_namespace(namespace, "events")


def resource_claims_path() -> str:
    """The claims of all namespaces."""
    return "/apis/resource.k8s.io/v1/resourceclaims"


def resource_claim_path(namespace: str, name: str) -> str:
    checked = _checked("namespace", namespace), _checked("resource claim", name)
    return "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims/{}".format(*checked)


def resource_slices_path() -> str:
    """The slices of every driver and node."""
    return "/apis/resource.k8s.io/v1/resourceslices"


def resource_slice_path(name: str) -> str:
    return f"{resource_slices_path()}/{_checked('resource slice', name)}"


def secrets_path(namespace: str) -> str:
    """All Secrets of a namespace."""
    return _in_namespace(namespace, "secrets")


def config_maps_path(namespace: str) -> str:
    """All ConfigMaps of a namespace."""
    return _in_namespace(namespace, "configmaps")


def token_path(namespace: str, account: str) -> str:
    """The subresource that issues a token for a service account."""
    return f"{_in_namespace(namespace, 'serviceaccounts')}/{_checked('service account', account)}/token"


def _in_namespace(namespace: str, what: str) -> str:
    return f"/api/v1/namespaces/{_checked('namespace', namespace)}/{what}" if namespace else f"/api/v1/{what}"


def _checked(what: str, name: str) -> str:
    if len(name) > _LONGEST or not _NAME.fullmatch(name):
        raise BadName(what, name)
    return name
