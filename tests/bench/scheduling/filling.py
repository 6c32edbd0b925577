"""Nodes with eight cards each and heartbeats, and pods: plain ones, placed ones, ones that request parts of cards.

Cards are for shares, or of the pool dra: then each node has the slice that our driver would publish.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from partage_base.kube import ApiServer, Meta, Node, leases_path, nodes_path, pods_path, resource_slices_path
from partage_dra.resource_slice import contents_of, slices_of
from partage_dra.slices import devices_of
from partage_plugins.api import GPU, GpuPart, Inventory
from partage_plugins.api.keys import GPU_MILLI
from rig.client.manifests import a_pod
from rig.client.resources import RESOURCE_CLAIMS
from rig.identity.people import OUR_NAMESPACE, TEAM
from support.claim_objects import devices, request
from support.gpu_fleet import card
from support.objects import READY, lease_body, node_body

CARDS: Final = 8
MILLIS: Final = (125, 250, 250, 500, 500, 500, 700, 1000, 1000, 0)
AT_ONCE: Final = 32
OURS, PLAIN, THERE = "ours", "plain", "there"
Objects = list[tuple[str, dict[str, Any]]]


async def fill_nodes(server: ApiServer, nodes: int, *, pool: str = "shared") -> None:
    await _created(server, partial(_node, pool=pool), range(nodes))


async def fill_pods(
    server: ApiServer,
    numbers: range,
    *,
    named: str = OURS,
    scheduler: str = "partage-scheduler",
    millis: Sequence[int] = MILLIS,
) -> None:
    """Creates pods that request parts of cards, by default nine in ten of them; pods of a kind are equal."""

    def make(number: int) -> Objects:
        milli = millis[number % len(millis)]
        limits = {"cpu": "100m", **({GPU_MILLI: str(milli)} if milli else {})}
        labels = {"app": f"train-{milli}"}
        return _pod(a_pod(f"{named}-{number:05}", scheduler=scheduler, limits=limits, labels=labels))

    await _created(server, make, numbers)


async def fill_plain(server: ApiServer, numbers: range) -> None:
    def make(number: int) -> Objects:
        return _pod(a_pod(f"{PLAIN}-{number:05}", limits={"cpu": "100m"}, labels={"app": "plain"}))

    await _created(server, make, numbers)


async def fill_claiming(server: ApiServer, numbers: range, *, named: str, scheduler: str, milli: int) -> None:
    """Creates pods that request two processors, each with its own claim for `milli` of a card, created before it."""

    def make(number: int) -> Objects:
        name = f"{named}-{number:05}"
        pod = a_pod(name, scheduler=scheduler, limits={"cpu": "2"}, labels={"app": named})
        pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
        pod["spec"]["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]
        claim = {"metadata": {"name": name}, "spec": devices(request(milli, "1Gi"))}
        return [(RESOURCE_CLAIMS.at(TEAM), claim), *_pod(pod)]

    await _created(server, make, numbers)


async def fill_placed(server: ApiServer, pods: int, nodes: int) -> None:
    def make(number: int) -> Objects:
        node = _name(number % nodes)
        return _pod(a_pod(f"{THERE}-{number:05}", node=node, limits={"cpu": "100m"}, labels={"app": "there"}))

    await _created(server, make, range(pods))


def _name(number: int) -> str:
    return f"n{number:04}"


def _pod(body: dict[str, Any]) -> Objects:
    return [(pods_path(TEAM), body)]


def _node(number: int, *, pool: str) -> Objects:
    name = _name(number)
    cards = tuple(card(f"{name}-{place}", pool=pool) for place in range(CARDS))
    part = GpuPart(driver="580", cuda="13.0", cards=cards)
    inventory = Inventory(kinds={GPU.name: part}, ready=READY)
    made_up = Node(metadata=Meta(name=name, uid=name))
    return [
        (nodes_path(), node_body(name, inventory)),
        (leases_path(OUR_NAMESPACE), lease_body(name, lasts_s=600)),
        *((resource_slices_path(), each) for each in slices_of(made_up, contents_of(devices_of(part)), {})),
    ]


async def _created(server: ApiServer, make: Callable[[int], Objects], numbers: range) -> None:
    left = iter(numbers)

    async def work() -> None:
        for number in left:
            for path, body in make(number):
                await server.create(path, body, msgspec.Raw)

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
