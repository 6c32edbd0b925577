"""The whole chart, installed: the API server accepts every field, and the objects that only the chart has work."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from partage_plugins.api.keys import GANG, GPU_MEMORY, GPU_MILLI
from real.scheduler.conftest import of, with_cards
from real.scheduler.test_extender import Behind
from real.scheduler.test_placing import require_good, wait_bound
from rig.client.cluster import Cluster
from rig.client.manifests import a_container, a_pod
from rig.client.resources import ADMISSION_POLICIES, CONFIG_MAPS, LEASES, NAMESPACES, PODS, Json, Resource
from rig.client.wait import until
from rig.control.plane import ControlPlane
from rig.errors import Refused
from rig.identity.people import OUR_NAMESPACE, TEAM, ServiceAccount
from rig.machine.components import serving
from support.chart import CHART, EVERYTHING, INTO, RELEASE, UNCHECKED, Helm, helm_in

KUBE_SCHEDULER = ServiceAccount(OUR_NAMESPACE, "partage-kube-scheduler")
TRUSTED = "trusted-by-name"
OURS = "partage-scheduler"
DEFAULT = "default-scheduler"
Create = Callable[[Resource, Json], None]
SHARE = {GPU_MILLI: "500"}
DRY = {"dryRun": "All"}
VOLUMES = Resource("v1", "persistentvolumes", namespaced=False)
CLAIMS = Resource("v1", "persistentvolumeclaims")
CLASSES = Resource("storage.k8s.io/v1", "storageclasses", namespaced=False)
SLICES = Resource("resource.k8s.io/v1", "resourceslices", namespaced=False)
DEVICE_CLASSES = Resource("resource.k8s.io/v1", "deviceclasses", namespaced=False)
DEVICE_CLAIMS = Resource("resource.k8s.io/v1", "resourceclaims")
PLACED: Mapping[str, tuple[Json, str]] = {
    "share": (a_pod("p", limits=SHARE), OURS),
    "memory": (a_pod("p", limits={GPU_MEMORY: "1Gi"}), OURS),
    "in an init container": (a_pod("p", init_containers=[a_container("i", limits=SHARE)]), OURS),
    "gang": (a_pod("p", annotations={GANG: "g"}), OURS),
    "nothing": (a_pod("p", limits={"cpu": "1"}), DEFAULT),
    "a card of kubelet's": (a_pod("p", limits={"nvidia.com/gpu": "1"}), DEFAULT),
    "another scheduler": (a_pod("p", limits=SHARE, scheduler="another"), "another"),
}


@pytest.fixture(scope="module", autouse=True)
def installed(control: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Generator[Helm]:
    with closing(Cluster(control)) as cluster:
        helm = helm_in(tmp_path_factory.mktemp("helm"), cluster.kubectl.kubeconfig)
        cluster.api.create(NAMESPACES.at(), {"metadata": {"name": TRUSTED}})
        values = (*EVERYTHING, UNCHECKED, f"trustedNamespaces={{{TRUSTED}}}")
        helm.run("install", RELEASE, CHART, *INTO, "--create-namespace", values=values)
        yield helm
        helm.run("uninstall", RELEASE, *INTO, "--wait")
        cluster.kubectl.run("delete", "crd/sharepods.kubeshare.nthu", f"namespace/{TRUSTED}")
        cluster.kubectl.run("delete", "namespace", OUR_NAMESPACE)


def scheduler_of(cluster: Cluster, namespace: str, pod: Json) -> str:
    """The scheduler's name in a pod, by a dry run."""
    return str(cluster.api.create(PODS.at(namespace), pod, DRY)["spec"]["schedulerName"])


@pytest.fixture
def team(cluster: Cluster) -> Cluster:
    """A namespace in which the policy that writes names is in force, which takes the API server a moment."""
    share, _ = PLACED["share"]
    until("it is in force", lambda: None if scheduler_of(cluster, TEAM, share) == OURS else "not yet")
    return cluster.as_user("alice")


def test_the_api_server_knows_every_field(cluster: Cluster, installed: Helm) -> None:
    how = ("--server-side", "--dry-run=server", "--validate=strict", "--force-conflicts")
    ran = cluster.kubectl.tried("apply", *how, "-f", "-", stdin=installed.run("get", "manifest", RELEASE, *INTO))
    assert (ran.status, ran.err) == (0, "")


def test_no_expression_of_a_policy_mistakes_a_type(cluster: Cluster) -> None:
    """The API server type-checks each expression for its kinds, and reports in the policy's status."""

    def why_not() -> str | None:
        found = cluster.api.list(ADMISSION_POLICIES.at())
        return None if all("typeChecking" in each.get("status", {}) for each in found) else "not all are checked"

    until("all policies are checked", why_not)
    warnings = [each["status"]["typeChecking"].get("expressionWarnings") for each in policies(cluster)]
    assert [each for each in warnings if each] == []


def test_pods_of_nodes_are_admitted_where_only_a_quota_admits_their_class(cluster: Cluster) -> None:
    critical = a_pod("p", spec={"priorityClassName": "system-node-critical"})
    with pytest.raises(Refused, match="insufficient quota to match these scopes"):
        cluster.api.create(PODS.at(TEAM), critical, DRY)

    def why_not() -> str | None:
        try:
            cluster.api.create(PODS.at(OUR_NAMESPACE), critical, DRY)
        except Refused as refused:
            return str(refused)
        return None

    until("the quota is counted", why_not)


def policies(cluster: Cluster) -> list[Json]:
    return [
        each for each in cluster.api.list(ADMISSION_POLICIES.at()) if each["metadata"]["name"].startswith("partage")
    ]


@pytest.mark.parametrize("what", PLACED)
def test_who_asks_for_shares_and_names_no_scheduler_gets_ours(team: Cluster, what: str) -> None:
    pod, scheduler = PLACED[what]
    assert scheduler_of(team, TEAM, pod) == scheduler


@pytest.mark.parametrize("namespace", ["kube-system", TRUSTED])
def test_pods_of_the_system_and_of_trusted_namespaces_are_left_alone(
    cluster: Cluster, team: Cluster, namespace: str
) -> None:
    pod, _ = PLACED["share"]
    assert team is not cluster
    assert scheduler_of(cluster, namespace, pod) == DEFAULT


def test_a_pod_that_names_its_node_is_told_to_leave_it_out(team: Cluster) -> None:
    with pytest.raises(Refused, match="cannot name its node itself"):
        scheduler_of(team, TEAM, a_pod("p", limits=SHARE, node="n1"))


@pytest.fixture
def create(cluster: Cluster) -> Iterator[Create]:
    """Create objects, in the team's namespace if namespaced; finally delete their pods, then the objects."""
    made: list[str] = []

    def create(resource: Resource, body: Json) -> None:
        cluster.api.create(resource.at(TEAM), body)
        made.append(resource.at(TEAM, body["metadata"]["name"]))

    yield create
    cluster.delete_made(grace_s=0)
    for path in reversed(made):
        cluster.api.delete(path)


@pytest.fixture
def asked(cluster: Cluster, control: ControlPlane, tmp_path: Path) -> Iterator[Behind]:
    """The chart's kube-scheduler, with its configuration and account, and our scheduler behind it.

    In this cluster no Service has an address and no pod runs, so both are processes, and the extender is on loopback.
    """
    data = cluster.api.get(CONFIG_MAPS.at(OUR_NAMESPACE, KUBE_SCHEDULER.name))["data"]
    configuration: Any = msgspec.yaml.decode(data["configuration.yaml"])
    own = cluster.as_account(KUBE_SCHEDULER).kubectl.kubeconfig
    configured = {**configuration, "clientConnection": {"kubeconfig": str(own)}}
    with of(cluster, tmp_path) as scheduler:
        made = Behind(control, scheduler, tmp_path, configured)
        made.start()
        with serving(made.kube):
            yield made
    for name in cluster.nodes.names():
        cluster.nodes.delete(name)
    cluster.api.delete(LEASES.at(OUR_NAMESPACE))


def test_a_pod_with_a_share_and_a_claim_that_waits_for_it_is_placed_where_both_are(
    cluster: Cluster, asked: Behind, create: Create, tmp_path: Path
) -> None:
    for name in ("n1", "n2", "n3"):
        with_cards(cluster, name)
    create_waiting_claim(create, volume_on="n2")
    pod = cluster.pods.create(
        TEAM,
        a_pod(
            "trains",
            scheduler="partage-kube-scheduler",
            limits=SHARE,
            spec={"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]},
        ),
    )
    wait_bound([pod])
    require_good([pod], tmp_path)
    assert pod.node == "n2"
    assert cluster.api.get(CLAIMS.at(TEAM, "data"))["status"]["phase"] == "Bound"
    assert asked.scheduler.stop() == 0


@pytest.mark.extended("starts a cluster of two nodes for shares beside claims")
def test_a_pod_with_a_share_and_a_claim_of_dra_is_placed_where_both_are(
    cluster: Cluster, asked: Behind, create: Create, tmp_path: Path
) -> None:
    """The DRA driver is made up: nobody prepares the device, so the pod is only bound."""
    for name in ("d1", "d2", "d3"):
        with_cards(cluster, name)
    create_device_claim(create, device_on="d2")
    pod = cluster.pods.create(
        TEAM,
        a_pod(
            "sends",
            scheduler="partage-kube-scheduler",
            more={"resources": {"limits": SHARE, "claims": [{"name": "port"}]}},
            spec={"resourceClaims": [{"name": "port", "resourceClaimName": "port"}]},
        ),
    )
    wait_bound([pod])
    require_good([pod], tmp_path)
    assert pod.node == "d2"
    status = cluster.api.get(DEVICE_CLAIMS.at(TEAM, "port"))["status"]
    (given,) = status["allocation"]["devices"]["results"]
    assert (given["pool"], given["device"]) == ("d2", "port-0")
    assert [each["uid"] for each in status["reservedFor"]] == [pod.uid]
    assert asked.scheduler.stop() == 0


def create_device_claim(create: Create, *, device_on: str) -> None:
    driver = "ports.example"
    pool = {"name": device_on, "generation": 1, "resourceSliceCount": 1}
    said = {"driver": driver, "nodeName": device_on, "pool": pool, "devices": [{"name": "port-0"}]}
    create(SLICES, {"metadata": {"name": "ports"}, "spec": said})
    chosen = {"selectors": [{"cel": {"expression": f"device.driver == '{driver}'"}}]}
    create(DEVICE_CLASSES, {"metadata": {"name": "port"}, "spec": chosen})
    wished = {"devices": {"requests": [{"name": "one", "exactly": {"deviceClassName": "port"}}]}}
    create(DEVICE_CLAIMS, {"metadata": {"name": "port"}, "spec": wished})


def create_waiting_claim(create: Create, *, volume_on: str) -> None:
    waits = "WaitForFirstConsumer"
    kind = {"metadata": {"name": "waits"}, "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": waits}
    create(CLASSES, kind)
    said = {"storageClassName": "waits", "accessModes": ["ReadWriteOnce"]}
    there = {"key": "kubernetes.io/hostname", "operator": "In", "values": [volume_on]}
    volume = {
        **said,
        "capacity": {"storage": "1Gi"},
        "local": {"path": "/data"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [there]}]}},
    }
    create(VOLUMES, {"metadata": {"name": "data"}, "spec": volume})
    claim = {**said, "resources": {"requests": {"storage": "1Gi"}}}
    create(CLAIMS, {"metadata": {"name": "data"}, "spec": claim})
