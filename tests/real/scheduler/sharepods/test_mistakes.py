"""The status of a SharePod that can have no pod, and who may create one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from rig.client.manifests import a_pod
from rig.client.resources import ROLE_BINDINGS, ROLES
from rig.client.rights import may
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import TEAM
from support.sharepods import GPUID, SHAREPODS_PATH, Stage, a_sharepod, by_hand

RBAC = "rbac.authorization.k8s.io"
Allow = Callable[[str, str], None]


WRONG = {
    "limit": (a_sharepod("limit", "0.5", annotations={"kubeshare/gpu_limit": "1.5"}), "kubeshare/gpu_limit"),
    "number": (a_sharepod("number", "NaN"), "kubeshare/gpu_request"),
    "memory": (a_sharepod("memory", "0.5", annotations={"kubeshare/gpu_mem": "1Gi"}), "kubeshare/gpu_mem"),
    "node-alone": (a_sharepod("node-alone", "0.5", nodeName="n1"), GPUID),
    "nothing-asked": (a_sharepod("nothing-asked", annotations={GPUID: "abcde"}, nodeName="n1"), "kubeshare/gpu_limit"),
    "card-alone": (a_sharepod("card-alone", "0.5", annotations={GPUID: "abcde"}), "spec.nodeName"),
}


def test_a_wrong_value_is_told_by_its_key_and_no_pod_is_made(stage: Stage) -> None:
    for manifest, _ in WRONG.values():
        stage.create(manifest)
    for name, (_, key) in WRONG.items():
        assert stage.wait_condition(name, "ErrValueError").startswith(f"Value error: {key} ")
        assert stage.pod(name) is None

    def why_not() -> str | None:
        told = {name: [(event.type, event.reason) for event in stage.events(name)] for name in WRONG}
        return None if all(each == [("Warning", "ErrValueError")] for each in told.values()) else str(told)

    until("their owners have an event each", why_not)


def test_a_pod_of_another_with_its_name_is_left_alone(stage: Stage) -> None:
    other = stage.cluster.pods.create(TEAM, a_pod("taken"))
    stage.create(a_sharepod("taken", "0.5"))
    message = 'Resource "taken" already exists and is not managed by SharePod'
    assert stage.wait_condition("taken", "ErrResourceExists") == message
    other.delete_and_wait(0)
    stage.wait_placed("taken")


def test_a_pod_that_the_namespace_refuses_is_told(stage: Stage) -> None:
    """Pod security and quotas apply to the pod, whoever creates it."""
    label = {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "baseline"}}}
    stage.cluster.api.patch(f"/api/v1/namespaces/{TEAM}", label)
    try:
        manifest = a_sharepod("p", "0.5")
        manifest["spec"]["containers"][0]["securityContext"] = {"privileged": True}
        stage.create(manifest)
        assert "violates PodSecurity" in stage.wait_condition("p", "PodRefused")
        assert stage.pod("p") is None
    finally:
        stage.cluster.api.patch(
            f"/api/v1/namespaces/{TEAM}", {"metadata": {"labels": dict.fromkeys(label["metadata"]["labels"])}}
        )


def test_who_may_make_no_pods_may_make_no_sharepods(stage: Stage, carol_may: Allow) -> None:
    """RBAC on SharePods is not enough; with both rights it works."""
    carol_may("sharepods", "kubeshare.nthu")
    carol = stage.cluster.as_user("carol")
    with pytest.raises(Refused, match="must be allowed to create pods"):
        carol.api.create(SHAREPODS_PATH.at(TEAM), a_sharepod("p", "0.5"))
    stage.create(a_sharepod("p", "0.5"))
    with pytest.raises(Refused, match="must be allowed to create pods"):
        carol.api.patch(SHAREPODS_PATH.at(TEAM, "p"), {"spec": {"serviceAccountName": "other"}})
    carol.api.patch(SHAREPODS_PATH.at(TEAM, "p"), {"metadata": {"finalizers": []}})
    carol_may("pods", "")
    carol.api.create(SHAREPODS_PATH.at(TEAM), a_sharepod("q", "0.5"))


def test_an_ordinary_user_makes_them_and_writes_no_status(stage: Stage) -> None:
    alice = stage.cluster.as_user("alice")
    alice.api.create(SHAREPODS_PATH.at(TEAM), a_sharepod("p", "0.5"))
    stage.wait_placed("p")
    with pytest.raises(Refused):
        alice.api.patch(SHAREPODS_PATH.at(TEAM, "p", "status"), {"status": {"BoundDeviceID": "GPU-other"}})


@pytest.mark.parametrize(
    "change",
    [{"metadata": {"annotations": {GPUID: "other"}}}, {"spec": {"nodeName": "n2"}}],
    ids=["its card", "its node"],
)
def test_where_it_lies_does_not_change(stage: Stage, change: dict[str, Any]) -> None:
    stage.create(by_hand("p", "0.5", node="n1", gpuid="abcde"))
    with pytest.raises(Refused, match="do not change"):
        stage.cluster.api.patch(SHAREPODS_PATH.at(TEAM, "p"), change)


@pytest.fixture
def carol_may(stage: Stage) -> Iterator[Allow]:
    """Let carol create objects in the team's namespace, until the end of the test."""
    made: list[str] = []

    def allow(resource: str, group: str) -> None:
        made.append(f"carol-{resource}")
        allowed(stage, "carol", resource, group)

    yield allow
    for name in made:
        stage.cluster.api.delete(ROLE_BINDINGS.at(TEAM, name))
        stage.cluster.api.delete(ROLES.at(TEAM, name))


def allowed(stage: Stage, user: str, resource: str, group: str) -> None:
    """Grant it in the team's namespace."""
    name, metadata = f"{user}-{resource}", {"name": f"{user}-{resource}", "namespace": TEAM}
    rules = [{"apiGroups": [group], "resources": [resource], "verbs": ["get", "create", "patch"]}]
    role = {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": rules}
    binding = {
        "apiVersion": f"{RBAC}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
    }
    stage.cluster.api.create(ROLES.at(TEAM), role)
    stage.cluster.api.create(ROLE_BINDINGS.at(TEAM), binding)
    asked = {"namespace": TEAM, "verb": "create", "group": group, "resource": resource}
    until(f"{user} may create {resource}", lambda: None if may(stage.cluster, user, **asked) else "not yet", 20)
