"""Nodes on which kubelet has cards, and pods of ours that reserve some."""

from __future__ import annotations

from typing import Any

import msgspec

from partage_plugins.vocabulary import NodeName
from partage_scheduler.objects import ApiNode, ApiPod
from partage_scheduler.reservation import Reservation, body_of
from partage_scheduler.reservation.pods import RESOURCE
from support.gpu_fleet import card
from support.objects import node, of_cards, pod
from unit.scheduler.test_deciding_on_pods import NOW, Stage


def kubelets(name: str, cards: int, *, reserved: tuple[str, ...] = (), reservable: bool = True) -> ApiNode:
    """All of its cards are kubelet's but the first ones, each of which such a pod of `partage-cards` has."""
    held = [card(f"{name}-{place}", reservation=f"partage-cards/{each}") for place, each in enumerate(reserved)]
    rest = [card(f"{name}-{place}", pool="kubelet") for place in range(len(reserved), cards)]
    inventory = of_cards((*held, *rest), reservable=reservable)
    return node(name, inventory, labels={"name": name}, **dict[str, Any]({RESOURCE: str(cards)}))


def native(name: str, on: str, count: int = 1) -> ApiPod:
    container = {"name": "main", "resources": {"limits": {RESOURCE: str(count)}}}
    return pod(name, node=on, schedulerName="default-scheduler", containers=[container])


def reserving(name: str, on: str, *, bound: bool = True, going: bool = False, phase: str = "") -> ApiPod:
    """As the API server has it."""
    body = body_of(name, NodeName(on), image="pause")
    body["metadata"] |= {"uid": f"uid-{name}"}
    if going:
        body["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"
    body["spec"] |= {"nodeName": on if bound else ""}
    body["status"] = {"phase": phase or ("Running" if bound else "Pending")}
    return msgspec.convert(body, ApiPod)


class Pooled(Stage):
    """A scheduler without its I/O, over nodes whose cards are kubelet's."""

    def __init__(self, *nodes: ApiNode, pods: tuple[ApiPod, ...] = ()) -> None:
        super().__init__()
        for each in nodes:
            self.cluster.node(each)
            self.cluster.heartbeat(each.name, NOW, NOW)
        for one in pods:
            self.cluster.pod(one)

    def reservations(self, *pods: ApiPod) -> list[Reservation]:
        return [Reservation.of(each) for each in pods]
