"""What we deliver for SharePods is taken by a real API server, which refuses fields that it does not know."""

from __future__ import annotations

from real.scheduler.test_manifests import taken
from rig.client.cluster import Cluster

NAME = "partage-sharepods"
POLICIES = (NAME, f"{NAME}-pods", f"{NAME}-shares")
RBAC = "rbac.authorization.k8s.io"


def test_the_api_server_takes_all_of_it(bare: Cluster) -> None:
    assert taken(bare, "sharepods") == {
        ("customresourcedefinition.apiextensions.k8s.io", "sharepods.kubeshare.nthu"),
        *(("validatingadmissionpolicy.admissionregistration.k8s.io", name) for name in POLICIES),
        *(("validatingadmissionpolicybinding.admissionregistration.k8s.io", name) for name in POLICIES),
        ("serviceaccount", NAME),
        (f"clusterrole.{RBAC}", NAME),
        (f"clusterrolebinding.{RBAC}", NAME),
        (f"role.{RBAC}", NAME),
        (f"rolebinding.{RBAC}", NAME),
        (f"clusterrole.{RBAC}", f"{NAME}-edit"),
        (f"clusterrole.{RBAC}", f"{NAME}-view"),
        ("networkpolicy.networking.k8s.io", NAME),
        ("deployment.apps", NAME),
    }
