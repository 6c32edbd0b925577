"""Facts of a cluster that can't be read are named, and hide no others."""

from __future__ import annotations

from pathlib import Path

from partage_base.kube import ApiServer
from partage_cli.audit import of_pods, sources
from partage_cli.doctor.findings import Severity
from partage_cli.nodes import command as nodes_command
from partage_plugins.api import GPU
from support.fake_api import FakeApi
from support.scheduler_stage import NODES, OURS, add_node, add_pod


async def test_objects_that_can_not_be_read_are_findings_and_the_rest_is_seen(
    api: FakeApi, server: ApiServer, tmp_path: Path
) -> None:
    add_node(api, "n1")
    add_pod(api, "p", 500)
    add_pod(api, "odd", nodeName="n1", priority="none")
    api.objects.create(NODES, {"metadata": {"name": "n2"}, "spec": "none"})
    seen = await sources.cluster(server, namespace=OURS, kinds=(GPU,), root=tmp_path)
    assert ([each.name for each in seen.pods], list(seen.nodes)) == (["team/p"], ["n1"])
    findings = list(of_pods.unread(seen))
    assert {each.status for each in findings} == {Severity.WRONG}
    node, pod = (each.found for each in findings)
    assert node.startswith("node n2: ")
    assert pod.startswith("pod team/odd on node n1: ")


async def test_a_node_that_can_not_be_read_is_a_fault_beside_the_others(api: FakeApi, server: ApiServer) -> None:
    add_node(api, "n1")
    api.objects.create(NODES, {"metadata": {"name": "n2", "labels": "none"}})
    report = await nodes_command.cluster(server, namespace=OURS, node=None)
    assert [each.node for each in report.nodes] == ["n1"]
    assert list(report.faults) == ["n2"]
