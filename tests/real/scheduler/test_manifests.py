"""What we deliver for the scheduler is taken by a real API server."""

from __future__ import annotations

import pytest

from rig.client.cluster import Cluster
from rig.identity.permissions import FOLDER

POLICIES = ("allocations", "shares", "cdi", "visible-devices", "scheduler-pods")
SCHEDULER = {
    *(("validatingadmissionpolicy.admissionregistration.k8s.io", f"partage-{name}") for name in POLICIES),
    *(("validatingadmissionpolicybinding.admissionregistration.k8s.io", f"partage-{name}") for name in POLICIES),
    ("serviceaccount", "partage-scheduler"),
    ("clusterrole.rbac.authorization.k8s.io", "partage-scheduler"),
    ("clusterrolebinding.rbac.authorization.k8s.io", "partage-scheduler"),
    ("role.rbac.authorization.k8s.io", "partage-scheduler"),
    ("rolebinding.rbac.authorization.k8s.io", "partage-scheduler"),
    ("priorityclass.scheduling.k8s.io", "partage-scheduler"),
    ("prioritylevelconfiguration.flowcontrol.apiserver.k8s.io", "partage"),
    ("flowschema.flowcontrol.apiserver.k8s.io", "partage-scheduler"),
    ("flowschema.flowcontrol.apiserver.k8s.io", "partage-heartbeats"),
    ("networkpolicy.networking.k8s.io", "partage-scheduler"),
    ("poddisruptionbudget.policy", "partage-scheduler"),
    ("deployment.apps", "partage-scheduler"),
}
EXTENDER = {
    ("role.rbac.authorization.k8s.io", "partage-extender"),
    ("rolebinding.rbac.authorization.k8s.io", "partage-extender"),
    ("service", "partage-extender"),
    ("endpointslice.discovery.k8s.io", "partage-extender"),
    ("networkpolicy.networking.k8s.io", "partage-extender"),
}


def taken(cluster: Cluster, folder: str) -> set[tuple[str, ...]]:
    """What the API server would make of a folder; it refuses fields that it does not know."""
    how = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    said = cluster.kubectl.run("apply", *how, "-k", str(FOLDER / folder))
    return {tuple(line.split()[0].split("/", 1)) for line in said.splitlines()}


@pytest.mark.parametrize(("folder", "more"), [("scheduler", set[tuple[str, str]]()), ("extender", EXTENDER)])
def test_the_api_server_takes_all_of_it(bare: Cluster, folder: str, more: set[tuple[str, str]]) -> None:
    assert taken(bare, folder) == SCHEDULER | more
