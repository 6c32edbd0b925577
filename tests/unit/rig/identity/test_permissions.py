"""The rules of our service accounts name every right, and no more than these."""

from __future__ import annotations

from typing import Any

import pytest

from rig.identity.people import ADVERTISER, OUR_NAMESPACE, SCHEDULER
from rig.identity.permissions import ADVERTISER_RULES, SCHEDULER_RULES, manifests


def rights(rules: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.parametrize("rules", [SCHEDULER_RULES, ADVERTISER_RULES])
def test_no_rule_says_all(rules: list[dict[str, Any]]) -> None:
    assert "*" not in str(rules)


def test_the_scheduler_writes_bindings_statuses_and_events_alone() -> None:
    writes = {right for right in rights(SCHEDULER_RULES) if right[1] not in ("get", "list", "watch")}
    assert writes == {("pods/binding", "create"), ("pods/status", "patch"), ("events", "create"), ("events", "patch")}


def test_the_advertiser_patches_nodes_and_reads_pods_one_by_one() -> None:
    assert rights(ADVERTISER_RULES) == {("nodes", "get"), ("nodes", "patch"), ("pods", "get")}


@pytest.mark.parametrize("account", [SCHEDULER, ADVERTISER])
def test_leases_are_our_namespaces_alone(account: Any) -> None:
    (role,) = [
        manifest
        for manifest in manifests()
        if manifest["kind"] == "Role" and manifest["metadata"]["name"] == account.name
    ]
    assert role["metadata"]["namespace"] == OUR_NAMESPACE
    assert rights(role["rules"]) == {("leases", "get"), ("leases", "create"), ("leases", "update")}
