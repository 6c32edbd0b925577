"""The advertiser's manifests are consistent with themselves, the daemon's settings and names in the code."""

from __future__ import annotations

from typing import Any

import pytest

from partage_advertiser.events import COMPONENT
from partage_advertiser.settings import AdvertiserSettings
from partage_base.version import VERSION
from partage_gpu.discovery.node_files import CHECKPOINT, SOCKETS
from partage_gpu.node.settings import DRIVER_ROOT
from partage_plugins.api.keys import INVENTORY
from partage_plugins.api.places import INVENTORY_FILE
from rig.identity.people import ADVERTISER, OUR_NAMESPACE
from rig.identity.permissions import FOLDER, Manifest, delivered

FILES = ("namespace", "admission", "rbac", "networkpolicy", "daemonset")
OBJECTS = [manifest for file in FILES for manifest in delivered(f"advertiser/{file}.yaml")]
COMMON = ("PARTAGE_NODE_NAME", "PARTAGE_ROOT", "PARTAGE_LOG_LEVEL", "PARTAGE_LOG_FORMAT")


def of_kind(kind: str) -> list[Manifest]:
    return [manifest for manifest in OBJECTS if manifest["kind"] == kind]


def rights(manifest: Manifest) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in manifest["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def pod() -> Any:
    return of_kind("DaemonSet")[0]["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


def mounts() -> dict[str, Any]:
    """Mounts by path in the container, with the volume's source instead of its name."""
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    return {mount["mountPath"]: {**volumes[mount["name"]], **mount} for mount in container()["volumeMounts"]}


def environment() -> dict[str, Any]:
    return {each["name"]: each.get("value") for each in container()["env"]}


def policy(kind: str) -> Manifest:
    (found,) = [each for each in of_kind("ValidatingAdmissionPolicy") if each["metadata"]["name"].endswith(f"-{kind}")]
    return found


def test_kustomize_takes_every_file() -> None:
    (kustomization,) = delivered("advertiser/kustomization.yaml")
    assert kustomization["resources"] == [f"{file}.yaml" for file in FILES]
    assert {path.name for path in (FOLDER / "advertiser").iterdir()} == {
        *kustomization["resources"],
        "kustomization.yaml",
    }


def test_its_metrics_are_reached_from_namespaces_that_scrape_alone() -> None:
    (reached,) = of_kind("NetworkPolicy")
    (rule,) = reached["spec"]["ingress"]
    assert rule["from"] == [{"namespaceSelector": {"matchLabels": {"partage.dev/scrapes": "true"}}}]
    (port,) = container()["ports"]
    assert [each["port"] for each in rule["ports"]] == [port["containerPort"]]
    labels = of_kind("DaemonSet")[0]["spec"]["template"]["metadata"]["labels"]
    assert reached["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
    assert not pod().get("hostNetwork"), "no policy would hold for it"


def test_the_account_patches_nodes_and_reads_pods_one_by_one_and_slices() -> None:
    (role,) = of_kind("ClusterRole")
    nodes = {("nodes", verb) for verb in ("get", "list", "watch", "patch")}
    slices = {("resourceslices", verb) for verb in ("list", "watch")}
    assert rights(role) == {*nodes, ("pods", "get"), *slices}


def test_leases_are_our_namespaces_alone_and_events_those_of_nodes() -> None:
    leases = {("leases", verb) for verb in ("get", "list", "watch", "create", "update", "delete")}
    assert {role["metadata"]["namespace"]: rights(role) for role in of_kind("Role")} == {
        AdvertiserSettings().namespace: leases,
        "default": {("events", "create"), ("events", "patch")},
    }


def test_all_rights_are_the_accounts_and_nobody_elses() -> None:
    subject = {"kind": "ServiceAccount", "name": ADVERTISER.name, "namespace": ADVERTISER.namespace}
    for binding in (*of_kind("ClusterRoleBinding"), *of_kind("RoleBinding")):
        assert binding["subjects"] == [subject]


@pytest.mark.parametrize("kind", ["nodes", "leases", "events"])
def test_each_policy_holds_for_the_account_fails_closed_and_is_in_force(kind: str) -> None:
    spec = policy(kind)["spec"]
    (condition,) = spec["matchConditions"]
    assert condition["expression"] == f"request.userInfo.username == '{ADVERTISER.user}'"
    assert spec["failurePolicy"] == "Fail"
    bound = [each["spec"] for each in of_kind("ValidatingAdmissionPolicyBinding")]
    assert {"policyName": policy(kind)["metadata"]["name"], "validationActions": ["Deny"]} in bound


@pytest.mark.parametrize("kind", ["nodes", "leases", "events"])
def test_each_policy_watches_every_operation_and_answers_as_rbac_does(kind: str) -> None:
    spec = policy(kind)["spec"]
    assert all(rule["operations"] == ["*"] for rule in spec["matchConstraints"]["resourceRules"])
    assert {validation["reason"] for validation in spec["validations"]} == {"Forbidden"}


def test_policies_and_code_use_the_same_words() -> None:
    inventory = [each for each in policy("nodes")["spec"]["variables"] if each["name"] == "inventory"]
    assert inventory == [{"name": "inventory", "expression": f"'{INVENTORY}'"}]
    assert f"== '{COMPONENT}'" in str(policy("events"))
    assert f"'{AdvertiserSettings().namespace}'" in str(policy("leases"))
    assert AdvertiserSettings().namespace == OUR_NAMESPACE


def test_the_daemon_knows_each_variable_that_it_is_given() -> None:
    own = {f"PARTAGE_ADVERTISER_{field.upper()}" for field in AdvertiserSettings.__struct_fields__}
    given = {name for name in environment() if name.startswith("PARTAGE_")}
    assert given <= {*own, *COMMON, DRIVER_ROOT}


def test_it_is_told_its_node_by_the_node_that_it_is_on() -> None:
    (name,) = [each for each in container()["env"] if each["name"] == "PARTAGE_NODE_NAME"]
    assert name["valueFrom"] == {"fieldRef": {"fieldPath": "spec.nodeName"}}


def test_what_it_reads_and_writes_on_the_node_is_mounted_where_it_looks() -> None:
    settings = AdvertiserSettings()
    for path in (f"/{CHECKPOINT}", f"/{SOCKETS}", str(settings.pod_resources), f"/{INVENTORY_FILE}"):
        (mount,) = [mount for folder, mount in mounts().items() if f"{path}/".startswith(f"{folder}/")]
        assert mount["hostPath"]["path"] == mount["mountPath"]


def test_it_writes_below_run_partage_and_nowhere_else_on_the_node() -> None:
    writable = {path for path, mount in mounts().items() if not mount.get("readOnly") and "hostPath" in mount}
    assert writable == {"/run/partage", "/dev"}
    assert container()["securityContext"]["readOnlyRootFilesystem"] is True


def test_it_sees_drivers_that_come_later() -> None:
    driver_root = environment()[DRIVER_ROOT]
    assert mounts()[driver_root]["mountPropagation"] == "HostToContainer"
    assert "/dev" in mounts()


def test_its_probes_ask_where_it_answers() -> None:
    (port,) = container()["ports"]
    assert environment()["PARTAGE_ADVERTISER_METRICS_ADDRESS"].endswith(f":{port['containerPort']}")
    probes = {name: container()[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {port["name"]}
    assert {name: probe["path"] for name, probe in probes.items()} == {
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }


def test_a_stop_has_more_time_than_it_takes() -> None:
    assert pod()["terminationGracePeriodSeconds"] > AdvertiserSettings().stop_deadline_s


def test_the_image_is_ours_of_this_version_from_wherever_the_operator_says() -> None:
    assert container()["image"] == f"partage-node:{VERSION}"
