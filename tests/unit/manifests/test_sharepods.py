"""Manifests for SharePods are consistent with themselves, the settings and the code's behaviour."""

from __future__ import annotations

from partage_scheduler.sharepods.controller import COMPONENT
from partage_scheduler.sharepods.objects import GPUID, GROUP_VERSION, SHAREPODS
from partage_scheduler.sharepods.service import PODS, SHARES
from partage_scheduler.sharepods.settings import SharePodSettings
from rig.identity.people import OUR_NAMESPACE
from rig.identity.people import SHAREPODS as ACCOUNT
from rig.identity.permissions import FOLDER, Manifest, delivered

FILES = ("crd", "admission", "rbac", "networkpolicy", "deployment")
OBJECTS = {
    (each["kind"], each["metadata"]["name"]): each for file in FILES for each in delivered(f"sharepods/{file}.yaml")
}
OURS = "partage-sharepods"
COMMON = ("PARTAGE_NODE_NAME",)


def rights(manifest: Manifest) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in manifest["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def test_kustomize_takes_every_file() -> None:
    (kustomization,) = delivered("sharepods/kustomization.yaml")
    assert kustomization["resources"] == [f"{file}.yaml" for file in FILES]
    assert {path.name for path in (FOLDER / "sharepods").iterdir()} == {
        *kustomization["resources"],
        "kustomization.yaml",
    }


def test_it_may_do_what_it_does_and_changes_and_deletes_no_pod() -> None:
    followed = {stream.path.rpartition("/")[2] for stream in (SHARES, PODS)}
    assert rights(OBJECTS["ClusterRole", OURS]) == {
        *((kind, verb) for kind in followed for verb in ("get", "list", "watch")),
        ("sharepods", "patch"),
        ("sharepods/status", "update"),
        ("sharepods/finalizers", "update"),
        ("pods", "create"),
        ("events", "create"),
        ("events", "patch"),
    }


def test_it_changes_its_own_lease_alone() -> None:
    role = OBJECTS["Role", OURS]
    assert role["metadata"]["namespace"] == SharePodSettings().namespace == OUR_NAMESPACE
    assert rights(role) == {("leases", verb) for verb in ("get", "create", "update")}
    (named,) = [rule for rule in role["rules"] if "update" in rule["verbs"]]
    assert (named["resourceNames"], named["verbs"]) == ([COMPONENT], ["get", "update"])


def test_users_write_no_status() -> None:
    for role in ("edit", "view"):
        assert {resource for resource, _ in rights(OBJECTS["ClusterRole", f"{OURS}-{role}"])} == {"sharepods"}


def test_definition_policy_and_code_use_the_same_words() -> None:
    definition = OBJECTS["CustomResourceDefinition", "sharepods.kubeshare.nthu"]["spec"]
    (version,) = definition["versions"]
    assert f"{definition['group']}/{version['name']}" == GROUP_VERSION
    assert SHAREPODS.endswith(definition["names"]["plural"])
    policy = OBJECTS["ValidatingAdmissionPolicy", OURS]["spec"]
    assert f"'{ACCOUNT.user}'" in policy["matchConditions"][0]["expression"]
    assert all(f"[?'{GPUID}']" in variable["expression"] for variable in policy["variables"])
    assert policy["failurePolicy"] == "Fail"
    assert OBJECTS["ValidatingAdmissionPolicyBinding", OURS]["spec"] == {
        "policyName": OURS,
        "validationActions": ["Deny"],
    }


def test_the_daemon_knows_each_variable_that_it_is_given() -> None:
    (container,) = OBJECTS["Deployment", OURS]["spec"]["template"]["spec"]["containers"]
    own = {f"PARTAGE_SHAREPODS_{field.upper()}" for field in SharePodSettings.__struct_fields__}
    assert {each["name"] for each in container["env"]} <= {*own, *COMMON}
    assert container["command"] == [COMPONENT]
