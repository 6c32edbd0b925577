"""Denied for claims: unknown parameters, pods in which limits would not hold, slices of others."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest

from partage_cli.translate.manifests import translate_to_claims
from partage_plugins.api.claims import DRIVER
from partage_plugins.errors import PartageError
from partage_plugins.framework.scheduler import SchedulerFramework
from partage_scheduler.decision import Ledger
from rig.client.cluster import Cluster
from rig.client.manifests import a_container, a_pod
from rig.client.policies import why_not_denied
from rig.client.resources import (
    DEVICE_CLASSES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_QUOTAS,
    RESOURCE_SLICES,
    Json,
    Resource,
)
from rig.client.rights import every_right
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, TEAM, ServiceAccount
from rig.identity.permissions import delivered
from support.dialect_rows import FILES as FILES_OF_ROWS
from support.dialect_rows import all_plugins, rows_of

ACCOUNT = ServiceAccount(OUR_NAMESPACE, "partage-dra")
DRY = {"dryRun": "All"}
FREED = "freed"
GOOD = {"apiVersion": "partage.dev/v1", "kind": "ShareConfig"}
FILES = ("admission.yaml", "rbac.yaml", "classes.yaml")
REQUESTS: list[Json] = [{"name": "gpu", "exactly": {"deviceClassName": f"shared.{DRIVER}"}}]


@pytest.fixture(scope="module", autouse=True)
def _in_force(admin: Cluster) -> Iterator[None]:
    manifests = [each for file in FILES for each in delivered(f"dra/{file}")]
    for each in manifests:
        admin.api.create(_path(each, ""), each)
    admin.create_namespace(FREED, **{"resource.kubernetes.io/admin-access": "true"})
    until("the policies are in force", lambda: _why_not_in_force(admin))
    yield
    for each in reversed(manifests):
        admin.api.delete(_path(each, each["metadata"]["name"]))
    admin.delete_namespaces(FREED)


def _path(manifest: Json, name: str) -> str:
    kind = f"{manifest['kind'].lower()}s".replace("ys", "ies").replace("classs", "classes")
    namespace = manifest["metadata"].get("namespace")
    resource = Resource(manifest["apiVersion"], kind, namespaced=namespace is not None)
    return resource.at(namespace, name) if namespace else resource.at(name=name)


def _why_not_in_force(admin: Cluster) -> str | None:
    driver = admin.as_account(ACCOUNT)
    return why_not_denied(
        ("limitMilli", lambda: claimed(admin, {**GOOD, "limitMilli": 0})),
        ("(hostPID)", lambda: made(admin, TEAM, a_pod("p", spec={"hostPID": True}))),
        ("which node", lambda: driver.api.create(RESOURCE_SLICES.at(), a_slice("n1"), DRY)),
    )


def claimed(cluster: Cluster, parameters: Json, driver: str = DRIVER) -> Json:
    """A claim, by a dry run."""
    config = [{"opaque": {"driver": driver, "parameters": parameters}}]
    spec = {"devices": {"requests": REQUESTS, "config": config}}
    return cluster.api.create(RESOURCE_CLAIMS.at(TEAM), {"metadata": {"name": "c"}, "spec": spec}, DRY)


def made(cluster: Cluster, namespace: str, pod: Json) -> Json:
    """A pod with a claim, by a dry run."""
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "third"}]
    return cluster.api.create(PODS.at(namespace), pod, DRY)


def a_slice(node: str, driver: str = DRIVER) -> Json:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"{node}-{driver}"},
        "spec": {"driver": driver, "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]},
    }


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({**GOOD, "limitMili": 500}, "has limitMilli and nothing else"),
        ({**GOOD, "limitMilli": 0}, "a whole number from 1 to 1000"),
        ({**GOOD, "limitMilli": 1001}, "a whole number from 1 to 1000"),
        ({**GOOD, "limitMilli": 0.5}, "a whole number from 1 to 1000"),
        ({**GOOD, "limitMilli": "500"}, "a whole number from 1 to 1000"),
        ({**GOOD, "kind": "GpuConfig"}, "kind ShareConfig"),
        ({"limitMilli": 500}, "apiVersion partage.dev/v1"),
        ({**GOOD, "apiVersion": "partage.dev/v2"}, "apiVersion partage.dev/v1"),
    ],
)
def test_parameters_that_the_driver_would_refuse_are_told_to_whoever_writes_them(
    cluster: Cluster, parameters: Json, words: str
) -> None:
    alice = cluster.as_user("alice")
    with pytest.raises(Refused, match=words):
        claimed(alice, parameters)
    config = [{"opaque": {"driver": DRIVER, "parameters": parameters}}]
    template = {"spec": {"devices": {"requests": REQUESTS, "config": config}}}
    with pytest.raises(Refused, match=words):
        alice.api.create(RESOURCE_CLAIM_TEMPLATES.at(TEAM), {"metadata": {"name": "t"}, "spec": template}, DRY)
    with pytest.raises(Refused, match=words):
        cluster.api.create(DEVICE_CLASSES.at(), {"metadata": {"name": "mine"}, "spec": {"config": config}}, DRY)


def test_what_the_driver_understands_and_what_is_not_for_it_passes(cluster: Cluster) -> None:
    alice = cluster.as_user("alice")
    for limit in (1, 500, 1000):
        claimed(alice, {**GOOD, "limitMilli": limit})
    claimed(alice, GOOD)
    claimed(alice, {"kind": "GpuConfig"}, driver="gpu.nvidia.com")
    alice.api.create(RESOURCE_CLAIMS.at(TEAM), {"metadata": {"name": "c"}, "spec": {"devices": {}}}, DRY)


def confined(**said: Any) -> Json:
    return a_pod("p", more={"securityContext": said})


def mounting(path: str) -> Json:
    volumes = [{"name": "v", "emptyDir": {}}]
    return a_pod("p", more={"volumeMounts": [{"name": "v", "mountPath": path}]}, spec={"volumes": volumes})


REFUSED = {
    "hostPID": (a_pod("p", spec={"hostPID": True}), "hostPID"),
    "shared processes": (a_pod("p", spec={"shareProcessNamespace": True}), "shareProcessNamespace"),
    "privileged": (confined(privileged=True), "no container is privileged"),
    "SYS_ADMIN": (confined(capabilities={"add": ["NET_ADMIN", "SYS_ADMIN"]}), "adds SYS_ADMIN"),
    "all of root": (confined(capabilities={"add": ["ALL"]}), "adds SYS_ADMIN"),
    "an init container": (
        a_pod("p", init_containers=[a_container("i", more={"securityContext": {"privileged": True}})]),
        "no container is privileged",
    ),
    "at our folder": (mounting("/run/partage"), "mount the volume elsewhere"),
    "below our folder": (mounting("/run/partage/lib"), "mount the volume elsewhere"),
    "by its other name": (mounting("/var/run/partage/claims"), "mount the volume elsewhere"),
    "the loader's list": (mounting("/etc/ld.so.preload"), "mount the volume elsewhere"),
    "a way around": (mounting("/data/../run/partage"), "mount the volume elsewhere"),
    "two slashes": (mounting("/run//partage"), "mount the volume elsewhere"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_pod_in_which_limits_would_not_hold_is_not_made_but_where_administrators_are(
    cluster: Cluster, what: str
) -> None:
    pod, words = REFUSED[what]
    with pytest.raises(Refused, match=words):
        made(cluster.as_user("alice"), TEAM, pod)
    made(cluster, FREED, pod)


@pytest.mark.parametrize("resource", ["gpu.partage.dev/1of4", f"deviceclass.resource.kubernetes.io/shared.{DRIVER}"])
@pytest.mark.parametrize("is_init", [False, True])
def test_a_pod_that_asks_for_a_device_by_a_resource_is_looked_at_too(
    cluster: Cluster, resource: str, *, is_init: bool
) -> None:
    """Its claim is made when it is placed."""
    asking = a_container("asks", limits={resource: "1"}, more={})
    other = a_container("other", more={"securityContext": {"privileged": True}})
    first, last = ([asking], [other]) if is_init else ([other], [asking])
    pod = a_pod("p", init_containers=first, containers=last)
    with pytest.raises(Refused, match="no container is privileged"):
        cluster.as_user("alice").api.create(PODS.at(TEAM), pod, DRY)
    cluster.api.create(PODS.at(FREED), pod, DRY)


@pytest.mark.parametrize("path", ["/root/.cache", "/run/partage-data", "/run/secrets/x", "/etc/app"])
def test_volumes_that_are_nowhere_near_pass(cluster: Cluster, path: str) -> None:
    made(cluster.as_user("alice"), TEAM, mounting(path))


def test_pods_without_claims_are_not_looked_at(cluster: Cluster) -> None:
    for pod, _ in REFUSED.values():
        bare = {**pod, "spec": {name: said for name, said in pod["spec"].items() if name != "resourceClaims"}}
        cluster.api.create(PODS.at(TEAM), bare, DRY)


@pytest.mark.parametrize("context", [{"privileged": True}, {"capabilities": {"add": ["SYS_PTRACE"]}}])
def test_a_debugger_that_could_enter_a_container_with_a_claim_is_refused(cluster: Cluster, context: Json) -> None:
    pod = a_pod("debugged", spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "third"}]})
    path = cluster.pods.create(TEAM, pod).path("ephemeralcontainers")
    harmless = {"name": "d0", "image": "busybox", "targetContainerName": "main"}
    debugger = {**harmless, "name": "d1", "securityContext": context}
    cluster.api.patch(path, {"spec": {"ephemeralContainers": [harmless]}})
    with pytest.raises(Refused, match="no debugging container SYS_PTRACE"):
        cluster.api.patch(path, {"spec": {"ephemeralContainers": [harmless, debugger]}})


def test_the_driver_writes_the_slice_of_its_node_and_no_other(cluster: Cluster, n1: Json) -> None:
    driver = cluster.as_account(ACCOUNT, n1)
    path = RESOURCE_SLICES.at(name=f"n1-{DRIVER}")
    standing = driver.api.create(RESOURCE_SLICES.at(), a_slice("n1"))
    driver.api.replace(path, {**standing, "metadata": {**standing["metadata"], "labels": {"is": "changed"}}})
    for wrong in (a_slice("n2"), a_slice("n1", driver="gpu.nvidia.com")):
        with pytest.raises(Refused, match="for that node, and no others"):
            driver.api.create(RESOURCE_SLICES.at(), wrong, DRY)
    with pytest.raises(Refused, match="for that node, and no others"):
        cluster.as_account(ACCOUNT, cluster.nodes.get("n2")).api.delete(path)
    driver.api.delete(path)


def test_nobody_but_an_allocator_writes_what_was_allocated(cluster: Cluster, n1: Json) -> None:
    """By Kubernetes' own rights: a user, a node and our driver can read a claim's status, but not forge it."""
    claim = cluster.api.create(
        RESOURCE_CLAIMS.at(TEAM), {"metadata": {"name": "forged"}, "spec": {"devices": {"requests": REQUESTS}}}
    )
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}
    forged = {**claim, "status": {"allocation": {"devices": {"results": [result]}}}}
    path = f"{RESOURCE_CLAIMS.at(TEAM, 'forged')}/status"
    driver = cluster.as_account(ACCOUNT, n1)
    for who in (cluster.as_user("alice"), cluster.as_node("n1"), driver):
        with pytest.raises(Refused) as refused:
            who.api.replace(path, forged)
        assert refused.value.status == 403
    status = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims/status"], "verbs": ["*"]}]
    missing = pytest.raises(Refused, match='cannot update resource "resourceclaims/binding"')
    with every_right(cluster, "writes-status", status, ACCOUNT), missing:
        driver.api.replace(path, forged)
    cluster.api.delete(RESOURCE_CLAIMS.at(TEAM, "forged"))


def test_a_node_reads_the_claims_of_its_pods_one_by_one_and_lists_none(cluster: Cluster) -> None:
    with pytest.raises(Refused) as refused:
        cluster.as_node("n1").api.get(RESOURCE_CLAIMS.at(TEAM))
    assert refused.value.status == 403


def test_kubelet_s_own_identity_writes_slices_of_its_node_alone(cluster: Cluster) -> None:
    """By Kubernetes' own rights; a policy holds our driver to the same."""
    node = cluster.as_node("n1")
    node.api.create(RESOURCE_SLICES.at(), a_slice("n1"), DRY)
    with pytest.raises(Refused) as refused:
        node.api.create(RESOURCE_SLICES.at(), a_slice("n2"), DRY)
    assert refused.value.status == 403


def test_the_api_server_takes_all_claims_that_pods_of_other_dialects_become(cluster: Cluster) -> None:
    """It compiles each expression."""
    names = set[str]()
    for file in FILES_OF_ROWS:
        for number, row in enumerate(rows_of(file)):
            reads = SchedulerFramework(all_plugins(PARTAGE_NVIDIA_GPU=row.nvidia_gpu), Ledger()).requests
            try:
                claimed = translate_to_claims(deepcopy(row.manifest), {"name": f"{file.stem}-{number}"}, reads)
            except PartageError:
                continue
            for template in claimed.templates if claimed else ():
                names.add(template["metadata"]["name"])
                cluster.api.create(RESOURCE_CLAIM_TEMPLATES.at(TEAM), template, DRY)
    assert len(names) > len(FILES_OF_ROWS)


def test_what_is_allocated_is_never_changed_not_even_by_administrators(cluster: Cluster) -> None:
    """Limits are therefore lowered on the node, and raised by a new claim."""
    path = RESOURCE_CLAIMS.at(TEAM, "allocated")
    meta = {"name": "allocated", "finalizers": ["resource.kubernetes.io/delete-protection"]}
    cluster.api.create(RESOURCE_CLAIMS.at(TEAM), {"metadata": meta, "spec": {"devices": {"requests": REQUESTS}}})
    result = {"request": "gpu", "driver": DRIVER, "pool": "n1", "device": "gpu-0"}

    def allocate(device: str) -> None:
        allocation = {"devices": {"results": [{**result, "device": device}]}}
        cluster.api.replace(f"{path}/status", {**cluster.api.get(path), "status": {"allocation": allocation}})

    allocate("gpu-0")
    with pytest.raises(Refused, match="cannot be modified once set"):
        allocate("gpu-1")
    cluster.api.replace(f"{path}/status", {**cluster.api.get(path), "status": {}})
    cluster.api.patch(path, {"metadata": {"finalizers": None}})
    cluster.api.delete(path)


def test_access_of_administrators_is_for_namespaces_that_say_so(cluster: Cluster) -> None:
    requests = [{"name": "gpu", "exactly": {**REQUESTS[0]["exactly"], "adminAccess": True}}]
    claim = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": requests}}}
    with pytest.raises(Refused, match="adminAccess"):
        cluster.api.create(RESOURCE_CLAIMS.at(TEAM), claim, DRY)
    cluster.api.create(RESOURCE_CLAIMS.at(FREED), claim, DRY)


def test_a_quota_counts_devices_of_the_class_and_no_amounts(cluster: Cluster) -> None:
    hard = {f"shared.{DRIVER}.deviceclass.resource.k8s.io/devices": "1"}
    cluster.api.create(RESOURCE_QUOTAS.at(FREED), {"metadata": {"name": "one"}, "spec": {"hard": hard}})
    two = {**REQUESTS[0], "exactly": {**REQUESTS[0]["exactly"], "count": 2}}

    def why_not() -> str | None:
        try:
            cluster.api.create(
                RESOURCE_CLAIMS.at(FREED), {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [two]}}}, DRY
            )
        except Refused as refused:
            return None if "exceeded quota" in refused.message else refused.message
        return "two devices are allowed"

    until("the quota counts", why_not)
    cluster.api.create(
        RESOURCE_CLAIMS.at(FREED), {"metadata": {"name": "c"}, "spec": {"devices": {"requests": REQUESTS}}}, DRY
    )
    cluster.api.delete(RESOURCE_QUOTAS.at(FREED, "one"))
