"""Claims on cards, and pods that have them: nodes as each of two allocators knows them, and what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

from bench.scheduling.filling import CARDS, Objects, fill_all
from partage_base.kube import (
    ApiServer,
    Meta,
    Node,
    leases_path,
    micro_time,
    nodes_path,
    pods_path,
    resource_slices_path,
)
from partage_dra.resource_slice import contents_of, slices_of
from partage_dra.slices import devices_of
from partage_plugins.codecs import encode_inventory
from partage_plugins.vocabulary import GPU, GpuPart, Inventory, Ready
from partage_plugins.vocabulary.keys import INVENTORY
from partage_plugins.vocabulary.limits import WHOLE_MILLI
from partage_scheduler.objects import ApiPod, ApiResourceClaim
from rig.client.manifests import a_node, a_pod
from rig.identity.people import OUR_NAMESPACE, TEAM
from support.dra_stage import device_class, devices, request
from support.gpu_fleet import card

CLAIMED: Final = "claimed"
SHARE: Final = 300
MEMORY: Final = "4Gi"
CLASSES_PATH: Final = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS_PATH: Final = f"/apis/resource.k8s.io/v1/namespaces/{TEAM}/resourceclaims"


async def fill_claimable(server: ApiServer, nodes: int) -> None:
    """As the driver and the advertiser say them: whichever allocator comes finds its own word for the same cards."""

    def make(number: int) -> Objects:
        name = f"n{number:04}"
        part = GpuPart(
            driver="580", cuda="13.0", cards=tuple(card(f"{name}-{place}", pool="dra") for place in range(CARDS))
        )
        notes = {INVENTORY: encode_inventory(Inventory(kinds={GPU.name: part}, ready=Ready(broker=True))).decode()}
        beat = {"holderIdentity": name, "leaseDurationSeconds": 600, "renewTime": micro_time(datetime.now(UTC))}
        (slice_,) = slices_of(Node(metadata=Meta(name=name, uid=f"uid-{name}")), contents_of(devices_of(part)), {})
        return [
            (nodes_path(), a_node(name, annotations=notes)),
            (leases_path(OUR_NAMESPACE), {"metadata": {"name": name}, "spec": beat}),
            (resource_slices_path(), slice_),
        ]

    await server.create(CLASSES_PATH, device_class(), msgspec.Raw)
    await fill_all(server, make, nodes)


async def fill_claims(server: ApiServer, count: int, *, scheduler: str) -> None:
    """A claim for each pod, all of the same share."""

    def make(number: int) -> Objects:
        name = f"{CLAIMED}-{number:05}"
        use = {"resourceClaims": [{"name": "gpu", "resourceClaimName": name}]}
        pod: dict[str, Any] = a_pod(name, scheduler=scheduler, limits={"cpu": "100m"}, labels={"app": "claimed"})
        pod["spec"] |= use
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        claim = {"kind": "ResourceClaim", "apiVersion": "resource.k8s.io/v1", "metadata": {"name": name}}
        spec = devices(request(SHARE, MEMORY), limit_milli=500)
        return [(CLAIMS_PATH, {**claim, "spec": spec}), (pods_path(TEAM), pod)]

    await fill_all(server, make, count)


async def verified(server: ApiServer) -> Counter[str]:
    """What is bound, and how many cards that takes; raises where a card has more than there is of it."""
    claims = (await server.list(CLAIMS_PATH, ApiResourceClaim, limit=1000)).items
    pods = (await server.list(pods_path(TEAM), ApiPod, limit=1000)).items
    nodes = {claim.name: claim.results[0].pool for claim in claims if claim.results}
    bound = [pod for pod in pods if pod.node]
    if wrong := [pod.name for pod in bound if nodes.get(pod.name) != pod.node]:
        raise AssertionError(f"{len(wrong)} pods are not where their claims are, such as {wrong[0]}")
    given = _given(claims)
    if any(milli > WHOLE_MILLI for milli in given.values()):
        raise AssertionError(f"a card has {max(given.values())} milli of {WHOLE_MILLI}")
    return Counter({"bound": len(bound), "cards in use": len(given)})


def _given(claims: Iterable[ApiResourceClaim]) -> Counter[tuple[str, str]]:
    """The milli of each card."""
    given = Counter[tuple[str, str]]()
    for claim in claims:
        for result in claim.results:
            given[result.pool, result.device] += int(result.consumed_capacity["share"])
    return given
