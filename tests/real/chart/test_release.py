"""Installed, upgraded and uninstalled by helm, as the chart's page says: the cluster is as it was."""

from __future__ import annotations

from rig.client.cluster import Cluster
from rig.client.wait import until
from rig.identity.people import OUR_NAMESPACE
from support.chart import CHART, EVERYTHING, INTO, RELEASE, UNCHECKED, Helm

COMES_AND_GOES = ("events", "events.events.k8s.io", "leases.coordination.k8s.io")
"""Objects that the control plane itself writes."""
OF_SHAREPODS = {"CustomResourceDefinition sharepods.kubeshare.nthu", "APIService v1.kubeshare.nthu"}


def objects(cluster: Cluster) -> set[str]:
    """Everything that the API server lists, with its namespace."""
    listed = cluster.kubectl.run("api-resources", "--verbs=list", "-o", "name").split()
    kinds = ",".join(kind for kind in listed if kind not in COMES_AND_GOES)
    columns = "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name"
    found = cluster.kubectl.run("get", kinds, "--all-namespaces", "--no-headers", "-o", columns)
    return {" ".join(line.replace("<none>", "").split()) for line in found.splitlines()}


def test_what_is_installed_and_changed_is_taken_away_without_a_trace(cluster: Cluster, helm: Helm) -> None:
    before = objects(cluster)
    helm.run("install", RELEASE, CHART, *INTO, "--create-namespace", values=(*EVERYTHING, UNCHECKED))
    everything = objects(cluster)
    helm.run("upgrade", RELEASE, CHART, *INTO, "--reset-values", values=(UNCHECKED,))
    fewer = objects(cluster)
    assert {"PriorityClass partage-card", f"Service {OUR_NAMESPACE} partage-extender"} <= everything - fewer
    assert f"Deployment {OUR_NAMESPACE} partage-scheduler" in fewer
    assert fewer >= OF_SHAREPODS, "users' pods would have gone with it"
    helm.run("uninstall", RELEASE, *INTO, "--wait")
    cluster.kubectl.run("delete", "namespace", OUR_NAMESPACE)
    until("only SharePods are left", lambda: ", ".join((objects(cluster) ^ before) - OF_SHAREPODS) or None)
    assert objects(cluster) - before == OF_SHAREPODS
    cluster.kubectl.run("delete", "crd", "sharepods.kubeshare.nthu")
    until("it is as it was", lambda: ", ".join(objects(cluster) ^ before) or None)


def test_released_elsewhere_it_brings_its_namespace_and_takes_it_away(cluster: Cluster, helm: Helm) -> None:
    before = objects(cluster)
    helm.run("install", RELEASE, CHART, values=(UNCHECKED,))
    assert f"Namespace {OUR_NAMESPACE}" in objects(cluster) - before
    helm.run("uninstall", RELEASE, "--wait")
    until("it is as it was", lambda: ", ".join(objects(cluster) ^ before) or None)


def test_a_namespace_in_which_the_advertiser_could_not_run_is_refused(cluster: Cluster, helm: Helm) -> None:
    cluster.kubectl.run("create", "namespace", OUR_NAMESPACE)
    label = "pod-security.kubernetes.io/enforce"
    cluster.kubectl.run("label", "namespace", OUR_NAMESPACE, f"{label}=baseline")
    refused = helm.tried("install", RELEASE, CHART, *INTO)
    assert (refused.status, f"{label}=privileged" in refused.err) == (1, True), refused.err
    cluster.kubectl.run("delete", "namespace", OUR_NAMESPACE)


def test_keys_that_were_there_before_any_policy_kept_them_are_refused(cluster: Cluster, helm: Helm) -> None:
    cluster.kubectl.run("create", "namespace", OUR_NAMESPACE)
    cluster.kubectl.run("-n", OUR_NAMESPACE, "create", "configmap", "partage-keys", "--from-literal=planted.pub=a key")
    refused = helm.tried("install", RELEASE, CHART, *INTO)
    assert (refused.status, "delete configmap partage-keys" in refused.err) == (1, True), refused.err
    cluster.kubectl.run("delete", "namespace", OUR_NAMESPACE)


def test_whose_pods_cards_are_taken_for_is_said_where_a_kube_scheduler_asks_as_well(helm: Helm) -> None:
    behind = ("extender.enabled=true", "extender.callers={any}")
    reserving = ("reservations.enabled=true", "reservations.image=pause")
    said = [notes(helm, *values) for values in ((*behind, *reserving), behind, reserving)]
    assert ["for none that a kube-scheduler places" in each for each in said] == [True, False, False]


def notes(helm: Helm, *values: str) -> str:
    """The release notes that helm prints after an installation."""
    return helm.run("install", RELEASE, CHART, "--dry-run=client", values=values).partition("\nNOTES:\n")[2]
