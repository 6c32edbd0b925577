"""Manifests of scheduler and extender are consistent with themselves, the settings and the code's behaviour."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from partage_base.keyring import KeyFolders
from partage_base.version import VERSION
from partage_cli.rollout.lease import NAME as ROLLOUT
from partage_plugins.api.claims import DRIVER
from partage_plugins.api.gpu import RESERVATIONS
from partage_plugins.api.keys import ALLOC_PREFIX, GPU_RESOURCES, PREFIX, RESIZED_PODS
from partage_scheduler.api.streams import (
    BUDGETS,
    CLAIMS,
    CLASSES,
    CSI_NODES,
    DEVICE_CLASSES,
    NAMESPACES,
    NODES,
    PODS,
    QUOTAS,
    RESOURCE_CLAIMS,
    VOLUMES,
)
from partage_scheduler.extender import verbs
from partage_scheduler.reservation.pods import PRIORITY
from partage_scheduler.settings import SchedulerSettings
from partage_scheduler.sharepods.controller import COMPONENT as LEADS_SHAREPODS
from rig.identity.people import ADVERTISER, OUR_NAMESPACE, SCHEDULER
from rig.identity.permissions import FOLDER, Manifest, delivered

FILES = ("admission", "rbac", "priorityclass", "flowcontrol", "networkpolicy", "poddisruptionbudget", "deployment")
OBJECTS = [manifest for file in FILES for manifest in delivered(f"scheduler/{file}.yaml")]
EXTENDER_FILES = ("rbac", "service", "endpointslice", "networkpolicy")
(KUSTOMIZATION,) = delivered("extender/kustomization.yaml")
(SERVICE,) = delivered("extender/service.yaml")
(SLICE,) = delivered("extender/endpointslice.yaml")
ROLE, ROLE_BINDING = delivered("extender/rbac.yaml")
(REACHED,) = delivered("extender/networkpolicy.yaml")
(CONFIGURATION,) = delivered("extender/kube-scheduler-configuration.yaml")
(EXTENDER,) = CONFIGURATION["extenders"]
LEASES_POLICY = ("ValidatingAdmissionPolicy", "partage-advertiser-leases")
OF_ALL_ACCOUNTS = 9000
"""The precedence of Kubernetes' own FlowSchema for service accounts."""
COMMON = ("PARTAGE_NODE_NAME", "PARTAGE_ROOT", "PARTAGE_LOG_LEVEL", "PARTAGE_LOG_FORMAT")


def of_kind(kind: str) -> Manifest:
    (found,) = [manifest for manifest in OBJECTS if manifest["kind"] == kind]
    return found


def rights(manifest: Manifest) -> set[tuple[str, str]]:
    return {(resource, verb) for rule in manifest["rules"] for resource in rule["resources"] for verb in rule["verbs"]}


def pod() -> Any:
    return of_kind("Deployment")["spec"]["template"]["spec"]


def container() -> Any:
    (only,) = pod()["containers"]
    return only


def patched() -> dict[str, list[Any]]:
    """The additions of the extender's kustomization, by the list that they extend."""
    (patch,) = KUSTOMIZATION["patches"]
    operations = msgspec.yaml.decode(patch["patch"])
    assert {each["op"] for each in operations} == {"add"}
    found: dict[str, list[Any]] = {}
    for each in operations:
        found.setdefault(each["path"].removesuffix("/-").rpartition("/")[2], []).append(each["value"])
    return found


def test_kustomize_takes_every_file() -> None:
    (kustomization,) = delivered("scheduler/kustomization.yaml")
    assert kustomization["resources"] == [f"{file}.yaml" for file in FILES]
    names = {path.name for path in (FOLDER / "scheduler").iterdir()}
    assert names == {*kustomization["resources"], "kustomization.yaml"}
    assert KUSTOMIZATION["resources"] == ["../scheduler", *(f"{file}.yaml" for file in EXTENDER_FILES)]
    assert {path.name for path in (FOLDER / "extender").iterdir()} == {
        *KUSTOMIZATION["resources"][1:],
        "kustomization.yaml",
        "kube-scheduler-configuration.yaml",
    }


def test_it_reads_what_it_follows() -> None:
    followed = (PODS, NODES, NAMESPACES, VOLUMES, CLAIMS, CLASSES, CSI_NODES, BUDGETS, QUOTAS)
    kinds = {stream.path.rpartition("/")[2] for stream in followed}
    found = rights(of_kind("ClusterRole"))
    assert {resource for resource, verb in found if verb == "list"} == kinds
    assert {resource for resource, verb in found if verb == "watch"} == kinds


def test_it_writes_bindings_allocations_statuses_events_and_makes_room() -> None:
    found = {right for right in rights(of_kind("ClusterRole")) if right[1] not in ("get", "list", "watch")}
    assert found == {
        ("pods", "delete"),
        ("pods", "patch"),
        ("pods/binding", "create"),
        ("pods/status", "patch"),
        ("pods/eviction", "create"),
        ("events", "create"),
        ("events", "patch"),
    }
    assert "*" not in str(of_kind("ClusterRole")["rules"])


def test_where_cards_change_hands_it_makes_pods_in_a_namespace_of_their_own_alone() -> None:
    (kustomization,) = delivered("reservations/kustomization.yaml")
    objects = {each["kind"]: each for file in kustomization["resources"] for each in delivered(f"reservations/{file}")}
    assert {path.name for path in (FOLDER / "reservations").iterdir()} == {
        *kustomization["resources"],
        "kustomization.yaml",
    }
    assert objects["Namespace"]["metadata"]["name"] == RESERVATIONS
    assert objects["Role"]["metadata"]["namespace"] == objects["RoleBinding"]["metadata"]["namespace"] == RESERVATIONS
    assert rights(objects["Role"]) == {("pods", "create")}
    assert objects["PriorityClass"]["metadata"]["name"] == PRIORITY
    assert objects["PriorityClass"]["preemptionPolicy"] == "Never"


def test_where_it_allocates_claims_it_writes_them_and_nobody_else_does() -> None:
    (kustomization,) = delivered("claims/kustomization.yaml")
    files = kustomization["resources"]
    assert {path.name for path in (FOLDER / "claims").iterdir()} == {*files, "kustomization.yaml"}
    objects = {each["kind"]: each for file in files for each in delivered(f"claims/{file}")}
    assert objects["ClusterRoleBinding"]["subjects"] == [
        {"kind": "ServiceAccount", "name": SCHEDULER.name, "namespace": SCHEDULER.namespace}
    ]
    assert {resource for resource, _ in rights(objects["ClusterRole"])} == {
        *(each.name for each in (RESOURCE_CLAIMS, DEVICE_CLASSES)),
        *("resourceclaims/status", "resourceclaims/binding"),
    }
    conditions = str(objects["ValidatingAdmissionPolicy"]["spec"]["matchConditions"])
    assert f"'{SCHEDULER.user}'" in conditions
    assert f"'{DRIVER}'" in conditions


def test_it_updates_its_own_lease_alone_and_patches_those_of_nodes() -> None:
    role = of_kind("Role")
    assert role["metadata"]["namespace"] == SchedulerSettings().namespace == OUR_NAMESPACE
    (update,) = [rule for rule in role["rules"] if "update" in rule["verbs"]]
    assert update["resourceNames"] == [SchedulerSettings().scheduler_name]
    assert rights(role) == {("leases", verb) for verb in ("get", "list", "watch", "create", "update", "patch")}


def test_policies_know_the_account_and_protect_what_is_ours_alone() -> None:
    policies = {
        each["metadata"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "ValidatingAdmissionPolicy"
    }
    bindings = {
        each["spec"]["policyName"]: each["spec"]
        for each in OBJECTS
        if each["kind"] == "ValidatingAdmissionPolicyBinding"
    }
    allocations = policies["partage-allocations"]
    assert f"'{SCHEDULER.user}'" in allocations["matchConditions"][0]["expression"]
    assert f"startsWith('{ALLOC_PREFIX}')" in allocations["validations"][0]["expression"]
    leases = policies["partage-scheduler-leases"]
    assert f"'{SCHEDULER.user}'" in leases["matchConditions"][0]["expression"]
    assert f"key == '{RESIZED_PODS}'" in leases["validations"][0]["expression"]
    assert bindings.keys() == policies.keys()
    assert {policy["failurePolicy"] for policy in policies.values()} == {"Fail"}


def test_the_api_server_serves_placing_and_heartbeats_before_other_workloads() -> None:
    schemas = {each["metadata"]["name"]: each["spec"] for each in OBJECTS if each["kind"] == "FlowSchema"}
    level = of_kind("PriorityLevelConfiguration")["metadata"]["name"]
    assert {spec["priorityLevelConfiguration"]["name"] for spec in schemas.values()} == {level}
    assert all(spec["matchingPrecedence"] < OF_ALL_ACCOUNTS for spec in schemas.values())
    whose = {name: spec["rules"][0]["subjects"][0]["serviceAccount"]["name"] for name, spec in schemas.items()}
    assert whose == {"partage-scheduler": SCHEDULER.name, "partage-heartbeats": ADVERTISER.name}


def test_names_of_schedulers_are_written_for_the_words_of_the_native_dialect() -> None:
    (kustomization,) = delivered("mutation/kustomization.yaml")
    assert kustomization["resources"] == ["admission.yaml"]
    policy, binding = delivered("mutation/admission.yaml")
    assert binding["spec"]["policyName"] == policy["metadata"]["name"]
    (asks,) = [each for each in policy["spec"]["matchConditions"] if each["name"] == "asks-for-shares"]
    assert set(re.findall(r"startsWith\('([^']+)'\)", asks["expression"])) == {PREFIX}
    (mutation,) = policy["spec"]["mutations"]
    assert f"schedulerName: '{SchedulerSettings().scheduler_name}'" in mutation["applyConfiguration"]["expression"]
    (left_alone,) = binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"]
    assert {"kube-system", OUR_NAMESPACE, RESERVATIONS} <= set(left_alone["values"])


def test_the_prefix_that_nodes_may_not_use_is_that_of_every_lease_of_ours() -> None:
    policies = delivered("advertiser/admission.yaml")
    (leases,) = [each for each in policies if (each["kind"], each["metadata"]["name"]) == LEASES_POLICY]
    expressions = " ".join(each["expression"] for each in leases["spec"]["validations"])
    (prefix,) = re.findall(r"!request\.\?name\.orValue\(''\)\.startsWith\('([^']+)'\)", expressions)
    templates = (FOLDER / "chart/templates").rglob("*.yaml")
    granted = {
        name
        for path in templates
        for name in re.findall(r"resources: \[leases\]\n +resourceNames: \[(.+)\]", path.read_text())
    }
    assert granted >= {SchedulerSettings().scheduler_name, LEADS_SHAREPODS}
    for name in (*granted, SchedulerSettings().scheduler_name, LEADS_SHAREPODS, ROLLOUT):
        assert name.startswith(prefix)


def test_all_rights_are_the_accounts_and_nobody_elses() -> None:
    subject = {"kind": "ServiceAccount", "name": SCHEDULER.name, "namespace": SCHEDULER.namespace}
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        assert of_kind(kind)["subjects"] == [subject]
    assert pod()["serviceAccountName"] == SCHEDULER.name


def test_the_daemon_knows_each_variable_that_it_is_given() -> None:
    own = {f"PARTAGE_SCHEDULER_{field.upper()}" for field in SchedulerSettings.__struct_fields__}
    given = {each["name"] for each in (*container()["env"], *patched()["env"])}
    assert given <= {*own, *COMMON}


def test_the_extenders_service_leads_to_the_one_in_the_slice_and_it_alone_is_written() -> None:
    variables = {each["name"]: each for each in patched()["env"]}
    name = SLICE["metadata"]["name"]
    assert "selector" not in SERVICE["spec"]
    assert SLICE["metadata"]["labels"]["kubernetes.io/service-name"] == SERVICE["metadata"]["name"]
    assert "endpoints" not in SLICE, "applied again it would take the leader's address away"
    assert [(port["name"], port["port"]) for port in SLICE["ports"]] == [
        ("extender", SERVICE["spec"]["ports"][0]["port"])
    ]
    assert variables["PARTAGE_SCHEDULER_EXTENDER_SLICE"]["value"] == name
    address = variables["PARTAGE_SCHEDULER_POD_IP"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert address == "status.podIP"
    (rule,) = ROLE["rules"]
    assert rule["resourceNames"] == [name]
    assert rights(ROLE) == {("endpointslices", "get"), ("endpointslices", "patch")}
    subject = {"kind": "ServiceAccount", "name": SCHEDULER.name, "namespace": SCHEDULER.namespace}
    assert ROLE_BINDING["subjects"] == [subject]
    assert ROLE_BINDING["roleRef"]["name"] == ROLE["metadata"]["name"]


def test_its_ports_are_reached_by_who_asks_there() -> None:
    (scraped,) = of_kind("NetworkPolicy")["spec"]["ingress"]
    assert scraped["from"] == [{"namespaceSelector": {"matchLabels": {"partage.dev/scrapes": "true"}}}]
    (asked,) = REACHED["spec"]["ingress"]
    ports = [each["port"] for rule in (scraped, asked) for each in rule["ports"]]
    (metrics,), (extender,) = container()["ports"], patched()["ports"]
    assert ports == [metrics["containerPort"], extender["containerPort"]]


def test_keys_are_mounted_where_it_looks_and_the_private_one_is_its_own() -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in container()["volumeMounts"]}
    settings = SchedulerSettings()
    assert (mounts["keys"], mounts["signing"]) == (str(settings.keys), str(settings.signing_keys))
    assert KeyFolders.below(settings.keys.parent) == KeyFolders(settings.keys, settings.signing_keys)
    (signing,) = [volume["secret"] for volume in pod()["volumes"] if volume["name"] == "signing"]
    assert signing["defaultMode"] == 0o400
    assert pod()["securityContext"]["fsGroup"] == pod()["securityContext"]["runAsGroup"]


def test_it_is_confined() -> None:
    assert pod()["securityContext"]["runAsNonRoot"] is True
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_a_stop_has_more_time_than_it_takes() -> None:
    assert pod()["terminationGracePeriodSeconds"] > SchedulerSettings().stop_deadline_s


def test_the_image_is_ours_of_this_version_from_wherever_the_operator_says() -> None:
    assert container()["image"] == f"partage-scheduler:{VERSION}"


def test_its_ports_are_those_where_it_listens() -> None:
    variables = {each["name"]: each.get("value", "") for each in (*container()["env"], *patched()["env"])}
    (metrics,), (extender,) = container()["ports"], patched()["ports"]
    assert variables["PARTAGE_SCHEDULER_METRICS_ADDRESS"].endswith(f":{metrics['containerPort']}")
    assert variables["PARTAGE_SCHEDULER_EXTENDER_ADDRESS"].endswith(f":{extender['containerPort']}")
    probes = {name: container()[name]["httpGet"] for name in ("livenessProbe", "readinessProbe")}
    assert {probe["port"] for probe in probes.values()} == {metrics["name"]}
    assert probes["readinessProbe"]["path"] == "/readyz"
    (port,) = SERVICE["spec"]["ports"]
    assert port["targetPort"] == extender["containerPort"]


def test_the_extenders_port_asks_for_certificates() -> None:
    (volume,) = patched()["volumes"]
    (mount,) = patched()["volumeMounts"]
    files = {each["name"]: each.get("value", "") for each in patched()["env"]}
    assert volume["secret"]["defaultMode"] == 0o400
    for name in ("CERTIFICATE", "KEY", "CALLERS"):
        assert files[f"PARTAGE_SCHEDULER_EXTENDER_{name}"].startswith(f"{mount['mountPath']}/")


def test_kube_scheduler_asks_at_the_service_by_names_that_are_answered() -> None:
    name = f"{SERVICE['metadata']['name']}.{OUR_NAMESPACE}.svc"
    assert EXTENDER["urlPrefix"] == f"https://{name}:{SERVICE['spec']['ports'][0]['port']}"
    assert EXTENDER["tlsConfig"]["serverName"] == name
    asked = [EXTENDER[f"{verb}Verb"] for verb in ("filter", "prioritize", "preempt", "bind")]
    assert asked == [verbs.FILTER, verbs.PRIORITIZE, verbs.PREEMPT, verbs.BIND]
    assert EXTENDER["nodeCacheCapable"] is True
    assert EXTENDER["ignorable"] is False


def test_kube_scheduler_leaves_every_share_to_us() -> None:
    assert {each["name"] for each in EXTENDER["managedResources"]} == GPU_RESOURCES
    assert all(each["ignoredByScheduler"] for each in EXTENDER["managedResources"])


def test_kube_scheduler_waits_longer_than_we_let_it() -> None:
    seconds = re.fullmatch(r"(\d+)s", EXTENDER["httpTimeout"])
    assert seconds is not None
    assert int(seconds[1]) > SchedulerSettings().extender_answers_within_s


@pytest.mark.parametrize("profile", CONFIGURATION["profiles"])
def test_no_profile_has_our_own_schedulers_name(profile: Any) -> None:
    assert profile["schedulerName"] != SchedulerSettings().scheduler_name
