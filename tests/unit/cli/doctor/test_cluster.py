"""Findings about this node from the API server's answers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from partage_base.kube import KubeError, Lease, LeaseSpec, Meta, Node, NotAllowed, NotFound, Unreachable, micro_time
from partage_cli.clusters import Identity
from partage_cli.doctor.cluster import ClusterFacts, annotation, clock, cluster, judged
from partage_cli.doctor.findings import Finding, Severity
from partage_cli.doctor.local_node import LocalNode, Unseen
from partage_plugins.api import Inventory
from partage_plugins.api.inventory import Ready
from partage_plugins.api.keys import INVENTORY, KEYS
from partage_plugins.codecs import encode_inventory

TRUSTED = ("a" * 16, "b" * 16)
HERE = LocalNode(Path("/nowhere"), "n1")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ADVERTISER = "system:serviceaccount:partage-system:partage-advertiser"
WELL = encode_inventory(Inventory(ready=Ready(crishim=True, broker=True), kinds={})).decode()
AWAY = Unreachable("GET /x", "refused", may_be_done=False)


def no(error: type[Any], status: int) -> KubeError:
    refused: KubeError = error("PUT /x", status=status)
    return refused


def lease(age_s: float) -> Lease:
    spec = LeaseSpec(lease_duration_seconds=40, renew_time=micro_time(NOW - timedelta(seconds=age_s)))
    return Lease(metadata=Meta(name="n1", annotations={KEYS: ",".join(TRUSTED)}), spec=spec)


def found(file: str | Unseen = WELL, who: str = ADVERTISER, **facts: Any) -> dict[str, Finding]:
    all_well: dict[str, Any] = {
        "identity": Identity(who, NOW.isoformat()),
        "node": Node(metadata=Meta(name="n1", annotations={INVENTORY: WELL})),
        "lease": lease(5),
        "renewal": None,
        "now": NOW,
    }
    return {each.check: each for each in judged(ClusterFacts(**(all_well | facts)), HERE, file, TRUSTED)}


def test_a_node_whose_advertiser_may_do_its_work_is_well() -> None:
    findings = found()
    assert {each.status for each in findings.values()} == {Severity.OK}
    assert set(findings) == {"api", "annotation", "in-force", "heartbeat", "heartbeat-write", "keys-told", "clock"}


def test_a_node_that_the_cluster_sees_as_not_in_force_is_said_why() -> None:
    ready = Ready(broker=True, why="kubelet does not speak through crishim")
    text = encode_inventory(Inventory(ready=ready, kinds={})).decode()
    node = Node(metadata=Meta(name="n1", annotations={INVENTORY: text}))
    said = found(node=node, file=text)["in-force"]
    assert (said.status, said.found) == (
        Severity.WRONG,
        "the cluster sees node n1 as not in force: kubelet does not speak through crishim",
    )
    assert found(lease=no(NotFound, 404))["in-force"].found.endswith("its advertiser has no heartbeat")
    assert found(lease=no(NotAllowed, 403))["in-force"].status is Severity.UNKNOWN


def test_an_api_server_that_is_away_is_one_finding() -> None:
    findings = found(identity=AWAY, node=AWAY, lease=AWAY, renewal=AWAY)
    assert [each.status for each in findings.values()] == [Severity.WRONG]


def test_a_node_of_another_name_is_told_to_be_named() -> None:
    assert "--node-name" in found(node=no(NotFound, 404))["api"].advice


@pytest.mark.parametrize(("age_s", "status"), [(0, Severity.OK), (40, Severity.OK), (41, Severity.WRONG)])
def test_a_heartbeat_is_old_after_as_long_as_it_says(age_s: float, status: Severity) -> None:
    assert found(lease=lease(age_s))["heartbeat"].status is status


def test_no_heartbeat_and_one_that_was_never_renewed_are_wrong() -> None:
    assert found(lease=no(NotFound, 404))["heartbeat"].status is Severity.WRONG
    assert found(lease=Lease())["heartbeat"].status is Severity.WRONG
    assert found(lease=no(NotAllowed, 403))["heartbeat"].status is Severity.UNKNOWN


@pytest.mark.parametrize(
    ("told", "status"), [("b", Severity.WARNING), ("", Severity.WARNING), (None, Severity.WARNING)]
)
def test_keys_that_the_cluster_knows_otherwise_than_the_node_are_told(told: str | None, status: Severity) -> None:
    annotations = {} if told is None else {KEYS: told * 16}
    assert found(lease=Lease(metadata=Meta(annotations=annotations)))["keys-told"].status is status


def test_only_the_advertiser_must_be_able_to_write_its_heartbeat() -> None:
    refused = no(NotAllowed, 403)
    assert found(renewal=refused)["heartbeat-write"].status is Severity.WRONG
    assert found(renewal=refused, who="system:node:n1")["heartbeat-write"].status is Severity.UNKNOWN


def test_file_and_annotation_must_say_the_same() -> None:
    assert annotation("{}", "{}\n", HERE).status is Severity.OK
    assert annotation("{}", '{"v":1}', HERE).status is Severity.WRONG
    assert annotation(None, "{}", HERE).status is Severity.WRONG
    assert annotation("{}", Unseen(Path("/x"), "is not there", is_missing=True), HERE).status is Severity.UNKNOWN


@pytest.mark.parametrize(("off_s", "status"), [(4, Severity.OK), (-6, Severity.WRONG), (3600, Severity.WRONG)])
def test_a_clock_may_differ_by_some_seconds(off_s: float, status: Severity) -> None:
    assert clock(NOW.isoformat().replace("+00:00", "Z"), NOW + timedelta(seconds=off_s)).status is status


@pytest.mark.parametrize("said", ["", "yesterday", "99999-01-01T00:00:00Z", "0001-01-01T00:00:00+23:59"])
def test_a_time_that_is_none_is_not_judged(said: str) -> None:
    assert clock(said, NOW).status is Severity.UNKNOWN


def test_a_kubeconfig_that_is_not_there_is_not_checked_and_says_what_to_do(tmp_path: Path) -> None:
    (finding,) = cluster(LocalNode(tmp_path, "n1", kubeconfig=tmp_path / "none"))
    assert finding.status is Severity.UNKNOWN
    assert "--kubeconfig" in finding.advice
