"""Builders of claims, device classes, pods with claims, and nodes whose cards are for claims."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from partage_cli.simulation.policies import decider_with
from partage_plugins.api import GPU, Ready
from partage_scheduler.claims import ClaimGrant, allocation_of
from partage_scheduler.cluster import Cluster, ClusterSettings
from partage_scheduler.cycle import Bind, Cycle, Unschedulable
from partage_scheduler.objects import ApiDeviceClass, ApiNode, ApiPod, ApiResourceClaim
from partage_scheduler.predicates import Predicates
from partage_scheduler.queue import Waiting
from rig.client.resources import Json
from support import claim_objects
from support.claim_objects import devices, request
from support.gpu_fleet import card
from support.objects import OURS, node, of_cards, pod, read
from unit.scheduler.cluster.cards import asks_of
from unit.scheduler.cluster.stage import trusted

NOW = 0.0
NO_CRISHIM = Ready(crishim=False, broker=True)


def device_class(limit_milli: int | None = None, **said: str) -> ApiDeviceClass:
    return read(ApiDeviceClass, **claim_objects.device_class(limit_milli, **said))


def claim(name: str, *requests: Json, **said: Any) -> ApiResourceClaim:
    """The claim as the API server returns it; by default with one request."""
    metadata = {"name": name, "namespace": "team", "uid": f"uid-{name}", "resourceVersion": "1"}
    return read(ApiResourceClaim, metadata=metadata, spec=devices(*(requests or (request(),)), **said))


def using(name: str, *claims: str, **said: Any) -> ApiPod:
    """A pod that uses these existing claims."""
    uses = [{"name": each, "resourceClaimName": each} for each in claims]
    return pod(name, resourceClaims=uses, **said)


def templated(name: str, made: str | None = None, **said: Any) -> ApiPod:
    """A pod with a claim from a template; `made` is the claim's name once it is created."""
    found = pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "third"}], **said)
    statuses = [] if made is None else [{"name": "gpu", "resourceClaimName": made}]
    status = msgspec.to_builtins(found.status) | {"resourceClaimStatuses": statuses}
    return replace(found, status=msgspec.convert(status, type(found.status)))


def allocated(claim: ApiResourceClaim, grant: ClaimGrant, *pods: ApiPod) -> ApiResourceClaim:
    """The claim as the API server returns it once `grant` is written and reserved for these pods."""
    reserved = [{"resource": "pods", "name": each.name, "uid": each.uid} for each in pods]
    status = {"allocation": allocation_of(grant, lambda: "id"), "reservedFor": reserved}
    return replace(claim, status=msgspec.convert(status, type(claim.status)))


def claimable(name: str, count: int, *, ready: Ready = NO_CRISHIM, pool: str = "dra", **fields: Any) -> ApiNode:
    """A node with `count` cards of 16 GiB for claims."""
    cards = tuple(card(f"{name}-{place}", pool=pool) for place in range(count))
    return node(name, of_cards(cards, ready=ready), **fields)


class Stage:
    """A scheduler without its I/O, which allocates claims unless `ours` is empty."""

    def __init__(self, *nodes: ApiNode, ours: str = OURS, policy: str = "fgd+") -> None:
        self.decider, self.framework = decider_with(policy)
        rules = Predicates(allocates_claims=bool(ours))
        self.cluster = Cluster(
            self.decider,
            rules,
            trusted=partial(trusted, kind=GPU),
            asks=asks_of(self.framework),
            settings=ClusterSettings(claims_of=ours),
        )
        self.cycle = Cycle(self.decider, self.framework.requests, self.cluster, rules)
        self.claims = self.cluster.claims
        self.claims.put_class(device_class())
        for each in nodes:
            self.cluster.node(each)
            self.cluster.heartbeat(each.name, NOW, NOW)

    def binds(self, pod: ApiPod) -> Bind:
        (verdict,) = self.cycle.decide(Waiting((pod,)), NOW)
        assert isinstance(verdict, Bind), verdict
        return verdict

    def stays(self, pod: ApiPod) -> Unschedulable:
        (verdict,) = self.cycle.decide(Waiting((pod,)), NOW)
        assert isinstance(verdict, Unschedulable), verdict
        return verdict

    def says(self, pod: ApiPod) -> str:
        return self.stays(pod).message

    def runs(self, pod: ApiPod, *claims: ApiResourceClaim) -> list[ApiResourceClaim]:
        """Schedule the pod as if all writes had succeeded: its claims are allocated, and it is seen on its node."""
        for each in claims:
            self.claims.put(each)
        bind = self.binds(pod)
        found: list[ApiResourceClaim] = []
        for grant in bind.claims:
            known = self.claims.get(grant.namespace, grant.name)
            assert known is not None
            found.append(allocated(known, grant, pod))
            self.claims.put(found[-1])
        self.cluster.pod(replace(pod, spec=replace(pod.spec, node_name=bind.decision.node)))
        return found
