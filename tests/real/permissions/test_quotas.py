"""Kubernetes' own quotas count parts of cards, and the policies of `manifests/quotas` prevent any bypass."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from partage_dialects import hami, kai, kubegpu_annotation, kubeshare_v1, kubeshare_v2, volcano
from partage_plugins.api.keys import GPU_MEMORY, GPU_MILLI, GPUS
from rig.client.api import Patch
from rig.client.cluster import Cluster
from rig.client.manifests import a_container, a_pod
from rig.client.resources import (
    LIMIT_RANGES,
    NAMESPACES,
    PODS,
    RESOURCE_QUOTAS,
    Json,
    path_of,
)
from rig.client.wait import until
from rig.errors import Refused
from rig.identity.permissions import delivered
from support.sharepods import Stage, a_sharepod, installed, uninstalled

pytestmark = pytest.mark.slow

COUNTED, STRICT, FILLED, OPEN = "quota-counted", "quota-strict", "quota-filled", "quota-open"
SHARING, SHAREPODS = "quota-sharing", "count/sharepods.kubeshare.nthu"
LABEL = {"partage.dev/quota": "strict"}
DRY = {"dryRun": "All"}
PART = {GPU_MILLI: "500", GPU_MEMORY: "8Gi"}
_MEMORY = "each container that asks for a part of a card must say in its limits how much memory"
_DIALECT = "do not count a request that stands in annotations or labels"

WITHOUT_MEMORY: Mapping[str, Mapping[str, str]] = {
    "share": {GPU_MILLI: "500"},
    "cards": {GPU_MILLI: "2000", GPUS: "2"},
    "volcano": {volcano.NUMBER: "1"},
    "volcano, percentage": {volcano.NUMBER: "1", volcano.PERCENTAGE: "50"},
    "hami": {hami.NUMBER: "1", hami.CORES: "50"},
}
UNCOUNTED: Mapping[str, Mapping[str, Any]] = {
    "kubeshare 1": {"annotations": {kubeshare_v1.LIMIT: "1.0"}},
    "kubeshare 1, by hand": {"annotations": {kubeshare_v1.GPUID: "abcde"}},
    "kubeshare 2": {"labels": {kubeshare_v2.LIMIT: "1.0"}},
    "kubegpu": {"annotations": {kubegpu_annotation.KUBEGPU: "{}"}},
    "kai": {"annotations": {kai.FRACTION: "0.5"}},
    "kai, by container": {"annotations": {f"{kai.PREFIX}main.{kai.REQUEST}": "1Gi"}},
    "kubedevice": {"annotations": {kubegpu_annotation.KUBEDEVICE: "{}"}},
}
COUNTS: Mapping[str, Mapping[str, str]] = {
    "share and memory": PART,
    "memory alone": {GPU_MEMORY: "8Gi"},
    "volcano": {volcano.NUMBER: "1", volcano.MEMORY: "8000"},
    "hami": {hami.NUMBER: "1", hami.CORES: "50", hami.MEMORY: "8000"},
    "a native card": {"nvidia.com/gpu": "1"},
    "none of a card": {"cpu": "1"},
}


@pytest.fixture(scope="module", autouse=True)
def quotas(admin: Cluster) -> Iterator[None]:
    for name in (COUNTED, STRICT, FILLED, OPEN, SHARING):
        admin.create_namespace(name, **(LABEL if name in (STRICT, FILLED) else {}))
    for manifest in delivered("quotas/admission.yaml"):
        admin.api.apply(manifest)
    (limits,) = delivered("quotas/limitrange.yaml")
    admin.api.create(LIMIT_RANGES.at(FILLED), limits)
    (quota,) = delivered("quotas/resourcequota.yaml")
    admin.api.create(RESOURCE_QUOTAS.at(COUNTED), quota)
    until("the quota is counted", lambda: None if _status(admin) else "not yet")
    until("the policies are in force", lambda: _why_not_in_force(admin))
    yield
    for manifest in delivered("quotas/admission.yaml"):
        admin.api.delete(path_of(manifest))
    admin.delete_namespaces(COUNTED, STRICT, FILLED, OPEN, SHARING)


@pytest.fixture
def sharing(cluster: Cluster) -> Iterator[Stage]:
    """A namespace with a quota for two SharePods, whose pods nobody creates."""
    installed(cluster)
    cluster.api.create(
        RESOURCE_QUOTAS.at(SHARING), {"metadata": {"name": "sharepods"}, "spec": {"hard": {SHAREPODS: "2"}}}
    )
    until("SharePods are counted", lambda: None if _shared(cluster) == "0" else f"{_shared(cluster)} are used")
    yield Stage(cluster, SHARING)
    uninstalled(cluster)
    cluster.api.delete(RESOURCE_QUOTAS.at(SHARING, "sharepods"))


def _shared(cluster: Cluster) -> str:
    return str(
        cluster.api.get(RESOURCE_QUOTAS.at(SHARING, "sharepods")).get("status", {}).get("used", {}).get(SHAREPODS)
    )


def _status(admin: Cluster) -> Json:
    return dict(admin.api.get(RESOURCE_QUOTAS.at(COUNTED, "cards")).get("status", {}).get("used", {}))


def _why_not_in_force(admin: Cluster) -> str | None:
    for pod in (a_pod("early", limits={GPU_MILLI: "1"}), a_pod("early", labels={kubeshare_v2.LIMIT: "1"})):
        try:
            admin.api.create(PODS.at(STRICT), pod, DRY)
        except Refused:
            continue
        return "a pod is not denied"
    return None


def waits(name: str, **said: Any) -> Json:
    return a_pod(name, scheduler="nobody", **said)


def created(cluster: Cluster, namespace: str, pod: Json) -> Json:
    return cluster.api.create(PODS.at(namespace), pod, DRY)


# ---- Kubernetes' own quotas ------------------------------------------------------------------------------------------


def test_a_quota_counts_parts_of_cards_and_refuses_what_is_beyond_it(cluster: Cluster) -> None:
    large = {GPU_MILLI: "2500", GPUS: "5", GPU_MEMORY: "80Gi"}
    first = cluster.pods.create(COUNTED, waits("first", limits=large))
    assert (_used(cluster, GPU_MILLI), _used(cluster, GPU_MEMORY)) == ("2500", "80Gi")
    with pytest.raises(
        Refused, match=r"exceeded quota: cards, requested: requests\.partage\.dev/gpu-milli=2500, used:"
    ):
        cluster.pods.create(COUNTED, waits("second", limits=large))
    cluster.api.delete(first.path(), {"gracePeriodSeconds": 0})
    until(
        "what is gone is not counted", lambda: None if _used(cluster, GPU_MILLI) == "0" else _used(cluster, GPU_MILLI)
    )
    cluster.pods.create(COUNTED, waits("third", limits=large))


def test_omitted_memory_counts_nothing(cluster: Cluster) -> None:
    before = _used(cluster, GPU_MEMORY)
    cluster.pods.create(COUNTED, waits("silent", limits={GPU_MILLI: "100"}))
    assert _used(cluster, GPU_MEMORY) == before


@pytest.mark.parametrize("limits", [{volcano.NUMBER: "1"}, {hami.NUMBER: "1"}], ids=["volcano", "nvidia.com/gpu"])
def test_a_dialect_of_which_a_quota_gives_nothing_is_refused(cluster: Cluster, limits: Mapping[str, str]) -> None:
    with pytest.raises(Refused, match="exceeded quota: cards"):
        created(cluster, COUNTED, a_pod("other", limits=limits))


@pytest.mark.extended("waits for the quota controller to find a new kind")
def test_sharepods_are_counted_as_objects(sharing: Stage) -> None:
    for name in ("one", "two"):
        sharing.create(a_sharepod(name, "0.5"))
    with pytest.raises(
        Refused, match=r"exceeded quota: sharepods, requested: count/sharepods\.kubeshare\.nthu=1, used:"
    ):
        sharing.create(a_sharepod("three", "0.1"))
    sharing.delete("one")
    until("what is gone is not counted", lambda: None if _shared(sharing.cluster) == "1" else _shared(sharing.cluster))
    sharing.create(a_sharepod("three", "0.1"))


def _used(cluster: Cluster, resource: str) -> str:
    return str(_status(cluster)[f"requests.{resource}"])


# ---- Strict namespaces -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("limits", WITHOUT_MEMORY.values(), ids=WITHOUT_MEMORY)
def test_each_container_that_asks_for_a_part_says_how_much_memory(cluster: Cluster, limits: Mapping[str, str]) -> None:
    asks, other = a_container("asks", limits=limits), a_container("other", limits=PART)
    for containers, first in (([other, asks], []), ([other], [asks])):
        pod = a_pod("silent", containers=containers, init_containers=first)
        with pytest.raises(Refused, match=_MEMORY):
            created(cluster, STRICT, pod)
        created(cluster, OPEN, pod)


@pytest.mark.parametrize("said", UNCOUNTED.values(), ids=UNCOUNTED)
def test_a_request_that_no_quota_counts_is_refused_at_once_and_later(cluster: Cluster, said: Mapping[str, Any]) -> None:
    with pytest.raises(Refused, match=_DIALECT):
        created(cluster, STRICT, a_pod("uncounted", **said))
    created(cluster, OPEN, a_pod("uncounted", **said))
    pod = cluster.pods.create(STRICT, waits("plain"))
    for part in (None, "status"):
        for kind in (Patch.MERGE, Patch.STRATEGIC):
            with pytest.raises(Refused, match=_DIALECT):
                cluster.api.patch(pod.path(part) if part else pod.path(), {"metadata": dict(said)}, kind)


@pytest.mark.parametrize("limits", COUNTS.values(), ids=COUNTS)
def test_what_a_quota_counts_is_taken(cluster: Cluster, limits: Mapping[str, str]) -> None:
    created(cluster, STRICT, a_pod("counted", limits=limits))


def test_what_a_limit_range_fills_in_is_said(cluster: Cluster) -> None:
    made = created(cluster, FILLED, a_pod("filled", limits={GPU_MILLI: "500"}))
    (container,) = made["spec"]["containers"]
    assert container["resources"]["limits"] == container["resources"]["requests"] == PART


def test_a_pod_from_before_goes_on_and_its_request_stays_as_it_is(cluster: Cluster) -> None:
    said = {kubeshare_v1.REQUEST: "0.5", kubeshare_v1.LIMIT: "1.0"}
    pod = cluster.pods.create(OPEN, waits("before", annotations=said))
    cluster.api.patch(NAMESPACES.at(name=OPEN), {"metadata": {"labels": LABEL}})
    try:
        until("the namespace is strict", lambda: _why_open(cluster))
        cluster.api.patch(pod.path("status"), {"status": {"phase": "Running"}})
        cluster.api.patch(pod.path(), {"metadata": {"annotations": {"theirs": "kept"}}})
        with pytest.raises(Refused, match=_DIALECT):
            cluster.api.patch(pod.path(), {"metadata": {"annotations": {kubeshare_v1.REQUEST: "1.0"}}})
    finally:
        cluster.api.patch(NAMESPACES.at(name=OPEN), {"metadata": {"labels": dict.fromkeys(LABEL)}})
        until("the namespace is open", lambda: None if _why_open(cluster) else "not yet")


def _why_open(cluster: Cluster) -> str | None:
    try:
        created(cluster, OPEN, a_pod("uncounted", labels={kubeshare_v2.LIMIT: "1"}))
    except Refused:
        return None
    return "nothing is refused"
