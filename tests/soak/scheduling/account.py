"""The soak's own identity at the API server: an account that may do everything and uses a token.

A certificate would be verified at each request, a token is cached; with thousands of requests in a few seconds that
would take processor time from the schedulers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rig.client.cluster import Cluster
from rig.client.resources import CLUSTER_ROLE_BINDINGS, SERVICE_ACCOUNTS
from rig.identity.people import OUR_NAMESPACE, ServiceAccount

_ACCOUNT: Final = ServiceAccount(OUR_NAMESPACE, "soak")
_EVERYTHING: Final = {
    "metadata": {"name": "soak"},
    "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "namespace": _ACCOUNT.namespace, "name": _ACCOUNT.name}],
}


def account(cluster: Cluster) -> Path:
    """The account's kubeconfig."""
    cluster.api.create(SERVICE_ACCOUNTS.at(_ACCOUNT.namespace), {"metadata": {"name": _ACCOUNT.name}})
    cluster.api.create(CLUSTER_ROLE_BINDINGS.at(), _EVERYTHING)
    return cluster.as_account(_ACCOUNT).kubectl.kubeconfig
