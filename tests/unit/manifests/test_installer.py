"""The installer's manifests are consistent with themselves, the daemon's settings and names in the code."""

from __future__ import annotations

from typing import Any

import pytest

from partage_base.version import VERSION
from partage_cli.rollout.installer.settings import InstallerSettings
from partage_cli.rollout.lease import NAME
from partage_cli.rollout.node_state import INSTALL, INSTALLED, DesiredState
from partage_cli.rollout.progress import DAEMON_SET
from rig.identity.people import INSTALLER, OUR_NAMESPACE
from rig.identity.permissions import FOLDER, Manifest, delivered

FILES = ("admission", "rbac", "daemonset")
OBJECTS = [manifest for file in FILES for manifest in delivered(f"installer/{file}.yaml")]
COMMON = ("PARTAGE_NODE_NAME", "PARTAGE_STOP_DEADLINE_S")


def of_kind(kind: str) -> list[Manifest]:
    return [manifest for manifest in OBJECTS if manifest["kind"] == kind]


def rights(manifest: Manifest) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in manifest["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def pod() -> Any:
    (daemon_set,) = of_kind("DaemonSet")
    assert daemon_set["metadata"]["name"] == DAEMON_SET
    return daemon_set["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


def environment() -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container()["env"]}


def mounts() -> dict[str, Any]:
    """Mounts by path in the container, with the volume's source instead of its name."""
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    return {mount["mountPath"]: {**volumes[mount["name"]], **mount} for mount in container()["volumeMounts"]}


def policy(kind: str) -> Manifest:
    (found,) = [each for each in of_kind("ValidatingAdmissionPolicy") if each["metadata"]["name"].endswith(f"-{kind}")]
    return found


def test_kustomize_takes_every_file_and_policies_before_the_account() -> None:
    (kustomization,) = delivered("installer/kustomization.yaml")
    assert kustomization["resources"] == [f"{file}.yaml" for file in FILES]
    assert {path.name for path in (FOLDER / "installer").iterdir()} == {
        *kustomization["resources"],
        "kustomization.yaml",
    }


def test_the_account_patches_nodes_and_takes_the_lease_and_nothing_else() -> None:
    (cluster_role,), (role,) = of_kind("ClusterRole"), of_kind("Role")
    assert rights(cluster_role) == {("nodes", verb) for verb in ("get", "list", "watch", "patch")}
    assert rights(role) == {("leases", verb) for verb in ("get", "create", "update")}
    assert {tuple(rule["verbs"]): rule.get("resourceNames") for rule in role["rules"]} == {
        ("get", "update"): [NAME],
        ("create",): None,
    }
    assert role["metadata"]["namespace"] == InstallerSettings().namespace == OUR_NAMESPACE
    subject = {"kind": "ServiceAccount", "name": INSTALLER.name, "namespace": INSTALLER.namespace}
    for binding in (*of_kind("ClusterRoleBinding"), *of_kind("RoleBinding")):
        assert binding["subjects"] == [subject]


@pytest.mark.parametrize("kind", ["nodes", "leases"])
def test_each_policy_holds_for_the_account_fails_closed_and_is_in_force(kind: str) -> None:
    spec = policy(kind)["spec"]
    (condition,) = spec["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == '{INSTALLER.user}'"
    assert spec["failurePolicy"] == "Fail"
    assert all(rule["operations"] == ["*"] for rule in spec["matchConstraints"]["resourceRules"])
    assert {validation["reason"] for validation in spec["validations"]} == {"Forbidden"}
    bound = [each["spec"] for each in of_kind("ValidatingAdmissionPolicyBinding")]
    assert {"policyName": policy(kind)["metadata"]["name"], "validationActions": ["Deny"]} in bound


def test_policies_and_code_use_the_same_words() -> None:
    installed = [each for each in policy("nodes")["spec"]["variables"] if each["name"] == "installed"]
    assert installed == [{"name": "installed", "expression": f"'{INSTALLED}'"}]
    names = [each["expression"] for each in policy("leases")["spec"]["validations"]]
    assert f"request.namespace == '{OUR_NAMESPACE}' && object.metadata.name == '{NAME}'" in names


def test_it_runs_where_the_label_asks_for_one_thing_or_the_other() -> None:
    (term,) = pod()["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {"key": INSTALL, "operator": "In", "values": [wish.value for wish in DesiredState]}
    ]


def test_all_are_replaced_at_once_since_they_take_turns_themselves() -> None:
    (daemon_set,) = of_kind("DaemonSet")
    assert daemon_set["spec"]["updateStrategy"]["rollingUpdate"] == {"maxUnavailable": "100%"}


def test_the_daemon_knows_each_variable_that_it_is_given() -> None:
    own = {f"PARTAGE_INSTALLER_{field.upper()}" for field in InstallerSettings.__struct_fields__}
    assert {name for name in environment() if name.startswith("PARTAGE_")} <= {*own, *COMMON}


def test_a_stop_has_more_time_than_it_takes() -> None:
    assert pod()["terminationGracePeriodSeconds"] > float(environment()["PARTAGE_STOP_DEADLINE_S"])


def test_host_keys_and_settings_are_mounted_where_it_looks() -> None:
    settings = InstallerSettings()
    host = mounts()[str(settings.host)]
    assert host["hostPath"] == {"path": "/", "type": "Directory"}
    assert host["mountPropagation"] == "HostToContainer"
    for path, name in ((settings.keys, "partage-keys"), (settings.node_settings, "partage-node")):
        assert mounts()[str(path)]["configMap"] == {"name": name, "optional": True}
        assert mounts()[str(path)]["readOnly"] is True


def test_it_is_in_the_hosts_network_and_among_its_processes_and_writes_nowhere_in_its_own_root() -> None:
    assert pod()["hostNetwork"] is pod()["hostPID"] is True
    assert container()["securityContext"] == {"privileged": True, "readOnlyRootFilesystem": True, "runAsUser": 0}


def test_the_image_is_ours_of_this_version_from_wherever_the_operator_says() -> None:
    assert container()["image"] == f"partage-node:{VERSION}"
