"""The rules of our scheduler's account name every right, and no more than these; the advertiser's are delivered."""

from __future__ import annotations

from typing import Any

from rig.identity.delivered import delivered
from rig.identity.people import OUR_NAMESPACE, SCHEDULER
from rig.identity.permissions import SCHEDULER_RULES, manifests


def rights(rules: list[dict[str, Any]]) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


def test_no_rule_says_all() -> None:
    assert "*" not in str(SCHEDULER_RULES)


def test_the_scheduler_writes_bindings_statuses_and_events_alone() -> None:
    writes = {right for right in rights(SCHEDULER_RULES) if right[1] not in ("get", "list", "watch")}
    assert writes == {("pods/binding", "create"), ("pods/status", "patch"), ("events", "create"), ("events", "patch")}


def test_its_leases_are_our_namespaces_alone() -> None:
    (role,) = [
        manifest
        for manifest in manifests()
        if manifest["kind"] == "Role" and manifest["metadata"]["name"] == SCHEDULER.name
    ]
    assert role["metadata"]["namespace"] == OUR_NAMESPACE
    assert rights(role["rules"]) == {("leases", "get"), ("leases", "create"), ("leases", "update")}


def test_the_advertisers_are_the_delivered_ones_and_its_policies_come_first() -> None:
    kinds = [manifest["kind"] for manifest in manifests()]
    assert kinds.index("ValidatingAdmissionPolicyBinding") < kinds.index("ServiceAccount")
    for file in ("admission", "rbac"):
        assert all(manifest in manifests() for manifest in delivered(f"advertiser/{file}.yaml"))
