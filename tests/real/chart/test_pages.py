"""The cluster commands in README and docs/ are accepted by an API server, by kubectl and by helm."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from rig.client.cluster import Cluster
from rig.identity.people import OUR_NAMESPACE
from rig.identity.permissions import FOLDER
from support.chart import CHART, KUBERNETES, RELEASE, Helm
from support.fences import commands, given, objects, typed
from support.objects import node_body

CRD = FOLDER / "sharepods/crd.yaml"
NODE = "gpu-1"
NOT_THERE = ("NotFound", "not found")
"""kubectl's answer about objects that exist only in a real cluster: the command itself was valid."""
MONITORING = ("monitoring.coreos.com/v1/PodMonitor", "monitoring.coreos.com/v1/PrometheusRule")


@pytest.fixture
def ours(cluster: Cluster) -> Iterator[Cluster]:
    """The cluster with the pages' node, our namespace and the SharePod kind."""
    cluster.nodes.create(node_body(NODE))
    cluster.create_namespace(OUR_NAMESPACE)
    cluster.kubectl.run("apply", "-f", str(CRD))
    cluster.kubectl.run("wait", "--for=create", "serviceaccount/default")  # without it no pod is accepted
    yield cluster
    cluster.kubectl.run("delete", "--ignore-not-found", "-f", str(CRD))
    cluster.kubectl.run("delete", "--ignore-not-found", "namespace", OUR_NAMESPACE)
    cluster.nodes.delete(NODE)


def typed_with(program: str) -> list[tuple[tuple[str, ...], str]]:
    """Each command of the pages once, with its stdin; commands that delete come last."""
    found = [(words, each.stdin) for each in typed() for words in commands(each.line) if words[0] == program]
    return sorted(dict.fromkeys(found), key=lambda each: "delete" in each[0])


def test_an_api_server_takes_every_object(ours: Cluster) -> None:
    made = [json.dumps(each) for _, each in objects()]
    assert len(made) >= 5
    ours.kubectl.run("create", "--dry-run=server", "-f", "-", stdin="\n---\n".join(made))


@pytest.mark.extended("runs kubectl for each; the objects that they make are looked at by every run")
def test_kubectl_takes_every_command(ours: Cluster) -> None:
    refused = dict[str, str]()
    for (_, *words), stdin in typed_with("kubectl"):
        ran = ours.kubectl.tried(*words, *(("--dry-run=server",) if stdin else ()), stdin=stdin)
        if ran.status and not any(word in ran.err for word in NOT_THERE):
            refused[" ".join(words)] = ran.err
    assert refused == {}


def test_helm_has_every_flag_and_the_chart_every_value(helm: Helm) -> None:
    kinds = [word for each in MONITORING for word in ("--api-versions", each)]
    for (_, *words), _ in typed_with("helm"):
        helm.run(*words, "--help")
        if words[0] != "uninstall":
            helm.run("template", RELEASE, CHART, "--kube-version", KUBERNETES, *kinds, values=given(words, "--set"))
